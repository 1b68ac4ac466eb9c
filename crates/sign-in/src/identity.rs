//! What an ID token says becomes a user, by expressions of the administrator.

use cel_expression::Expression;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Longer names are refused, in bytes.
const MAX_NAME: usize = 1024;
/// A user of more groups is refused.
const MAX_GROUPS: usize = 1000;
/// Names that clusters give out themselves begin so.
const OF_THE_CLUSTER: &str = "system:";

/// What expressions may name.
const NAMES: &[&str] = &["claims", "variables"];

/// Someone who signed in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct User {
    /// As whom clusters know them.
    pub username: String,
    /// The groups that clusters know them in.
    pub groups: Vec<String>,
    /// How a page may call them.
    pub name: String,
}

/// The expressions.
#[derive(Debug, Clone)]
pub struct Mapping {
    variables: Vec<(String, Expression)>,
    validations: Vec<(Expression, String)>,
    username: Expression,
    groups: Expression,
    name: Option<Expression>,
}

/// The expressions, as they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// Name and expression; each may use those before it.
    pub variables: Vec<(String, String)>,
    /// What must hold, and what is said if it does not.
    pub validations: Vec<(String, String)>,
    /// Gives the name of the user.
    pub username: Option<String>,
    /// Gives the list of groups.
    pub groups: Option<String>,
    /// Gives what a page calls them.
    pub name: Option<String>,
}

/// Why a token makes no user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An expression cannot be read, or has no value for these claims.
    #[error("{what}: {source}")]
    Expression {
        /// What it is for.
        what: String,
        /// Why.
        source: cel_expression::Error,
    },
    /// A validation does not hold.
    #[error("{0}")]
    Refused(String),
    /// The value of an expression is not of use.
    #[error("{what} {problem}")]
    Value {
        /// What it is for.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

const USERNAME: &str = "the expression for the username";
const GROUPS: &str = "the expression for the groups";

impl Mapping {
    /// Reads the expressions. Without one for the username, it is the email, which the provider must not call unverified: anyone
    /// may write an address into a profile.
    pub fn new(texts: &Texts) -> Result<Self, Error> {
        let read = |what: String, text: &str| {
            Expression::parse_with_variables(text, NAMES).map_err(|source| Error::Expression { what, source })
        };
        let variables = texts.variables.iter();
        let variables =
            variables.map(|(name, text)| Ok((name.clone(), read(format!("variable {name}"), text)?)));
        let validations = texts.validations.iter().enumerate();
        let validations = validations
            .map(|(at, (text, message))| Ok((read(format!("validation {at}"), text)?, message.clone())));
        let mut validations: Vec<_> = validations.collect::<Result<_, Error>>()?;
        if texts.username.is_none() {
            let verified = "!has(claims.email_verified) || claims.email_verified == true";
            let message = "your email address is not verified; verify it at the identity provider".to_owned();
            validations.push((read("the check of the email".to_owned(), verified)?, message));
        }
        let or = |text: &Option<String>, default: &str| text.clone().unwrap_or_else(|| default.to_owned());
        let name = texts.name.as_deref();
        Ok(Self {
            variables: variables.collect::<Result<_, Error>>()?,
            validations,
            username: read(USERNAME.to_owned(), &or(&texts.username, "claims.email"))?,
            groups: read(
                GROUPS.to_owned(),
                &or(&texts.groups, "has(claims.groups) ? claims.groups : []"),
            )?,
            name: name
                .map(|text| read("the expression for the name".to_owned(), text))
                .transpose()?,
        })
    }

    /// Makes a user of claims.
    ///
    /// # Errors
    /// When a validation does not hold, an expression has no value, or the user would be one of the cluster itself.
    pub fn user(&self, claims: &Value) -> Result<User, Error> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| Error::Expression { what, source }
        };
        let mut scope = json!({"claims": claims, "variables": {}});
        let mut variables = Map::new();
        for (name, expression) in &self.variables {
            let value = expression
                .evaluate(&scope)
                .map_err(failed(&format!("variable {name}")))?;
            variables.insert(name.clone(), value);
            scope["variables"] = Value::Object(variables.clone());
        }
        for (expression, message) in &self.validations {
            if !expression
                .evaluate_boolean(&scope)
                .map_err(failed("a validation"))?
            {
                return Err(Error::Refused(message.clone()));
            }
        }
        let username = self.username.evaluate_string(&scope).map_err(failed(USERNAME))?;
        let wrong = |what, problem| Err(Error::Value { what, problem });
        if username.trim().is_empty() || username.len() > MAX_NAME {
            return wrong(USERNAME, "gives no name, or one that is too long");
        }
        // The provider must not be able to make someone an administrator or a controller of the cluster.
        if username.starts_with(OF_THE_CLUSTER) {
            return wrong(
                USERNAME,
                "gives a name that begins with \"system:\", which only the cluster gives",
            );
        }
        let groups = self.groups.evaluate(&scope).map_err(failed(GROUPS))?;
        let groups: Option<Vec<String>> = serde_json::from_value(groups).ok();
        let Some(mut groups) = groups.filter(|groups| groups.len() <= MAX_GROUPS) else {
            return wrong(GROUPS, "gives no list of texts, or too many");
        };
        groups.retain(|group| {
            !group.is_empty() && group.len() <= MAX_NAME && !group.starts_with(OF_THE_CLUSTER)
        });
        let name = match &self.name {
            Some(expression) => expression.evaluate_string(&scope).map_err(failed("the name"))?,
            None => claims["name"].as_str().unwrap_or_default().to_owned(),
        };
        let name = Some(name).filter(|name| !name.trim().is_empty() && name.len() <= MAX_NAME);
        Ok(User {
            name: name.unwrap_or_else(|| username.clone()),
            username,
            groups,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(texts: Texts) -> Mapping {
        Mapping::new(&texts).unwrap()
    }

    #[test]
    fn without_expressions_it_is_the_verified_email_and_the_groups() {
        let plain = mapping(Texts::default());
        let claims = |verified: bool| json!({"email": "ana@example.com", "email_verified": verified, "groups": ["web"], "name": "Ana"});
        let ana = User {
            username: "ana@example.com".to_owned(),
            groups: vec!["web".to_owned()],
            name: "Ana".to_owned(),
        };
        assert_eq!(plain.user(&claims(true)), Ok(ana.clone()));
        assert!(matches!(plain.user(&claims(false)), Err(Error::Refused(_))));
        let bare = plain.user(&json!({"email": "ana@example.com"})).unwrap();
        assert_eq!((bare.groups.len(), bare.name), (0, "ana@example.com".to_owned()));
        assert!(matches!(
            plain.user(&json!({"sub": "1"})),
            Err(Error::Expression { .. })
        ));
    }

    #[test]
    fn expressions_make_the_user() {
        let mapping = mapping(Texts {
            variables: vec![
                ("domain".to_owned(), "claims.email.split('@')[1]".to_owned()),
                ("team".to_owned(), "variables.domain + '-team'".to_owned()),
            ],
            validations: vec![(
                "variables.domain == 'example.com'".to_owned(),
                "only example.com".to_owned(),
            )],
            username: Some("claims.sub".to_owned()),
            groups: Some("[variables.team]".to_owned()),
            name: Some("claims.nick".to_owned()),
        });
        let user = mapping
            .user(&json!({"sub": "1", "email": "a@example.com", "nick": "A"}))
            .unwrap();
        assert_eq!((user.username.as_str(), user.name.as_str()), ("1", "A"));
        assert_eq!(user.groups, ["example.com-team"]);
        let stranger = mapping.user(&json!({"sub": "1", "email": "a@elsewhere.com", "nick": "A"}));
        assert_eq!(stranger, Err(Error::Refused("only example.com".to_owned())));
    }

    #[test]
    fn nobody_becomes_one_of_the_cluster_itself() {
        let mapping = mapping(Texts {
            username: Some("claims.sub".to_owned()),
            ..Texts::default()
        });
        let groups = json!(["web", "system:masters", "", "system:serviceaccounts"]);
        let user = mapping.user(&json!({"sub": "ana", "groups": groups})).unwrap();
        assert_eq!(user.groups, ["web"]);
        for name in ["system:admin", "system:serviceaccount:a:b", "", " "] {
            assert!(
                matches!(mapping.user(&json!({"sub": name})), Err(Error::Value { .. })),
                "{name:?}"
            );
        }
        for groups in [
            json!("web"),
            json!([1]),
            json!({"a": 1}),
            json!(vec!["x"; MAX_GROUPS + 1]),
        ] {
            assert!(mapping.user(&json!({"sub": "ana", "groups": groups})).is_err());
        }
        let text = Texts {
            username: Some("secrets.all".to_owned()),
            ..Texts::default()
        };
        assert!(Mapping::new(&text).is_err());
    }
}
