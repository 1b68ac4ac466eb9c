//! generic-oidc: anyone with a token of a trusted issuer of which the Receiver's expressions are true.

use crate::Evaluator;
use crate::call::{Accepted, Call, Refused, Rules};
use crate::keys::{KeySource, Keys, Place};
use crate::token::Token;

/// Decides on a call. What needs no request is looked at first, so that a stranger cannot have issuers asked.
pub(crate) async fn verify<S: KeySource>(
    call: &Call<'_>,
    rules: &Rules<'_>,
    keys: &Keys<S>,
    evaluator: &Evaluator,
) -> Result<Accepted, Refused> {
    if rules.oidc.is_empty() {
        return Err(Refused::new(
            "generic-oidc receiver has no oidcProviders configured",
        ));
    }
    let token = Token::of_call(call)?;
    let issuer = token.text("iss");
    let provider = rules.oidc.iter().find(|provider| provider.issuer == issuer);
    let provider =
        provider.ok_or_else(|| Refused::new(format!("no oidcProvider configured for issuer {issuer:?}")))?;
    let failed = |reason: String| Refused::new(format!("failed to verify OIDC token: {reason}"));
    if !token.is_for(&provider.audience) {
        return Err(failed(format!("expected audience {:?}", provider.audience)));
    }
    token
        .check_time(rules.now)
        .map_err(|refused| failed(refused.to_string()))?;
    keys.check(Place::Issuer(provider.issuer.clone()), &token, rules.now)
        .await
        .map_err(failed)?;
    let (provider, claims) = (provider.clone(), token.claims().clone());
    let checked = evaluator.run(move || provider.check_claims(&claims).map(|()| claims));
    let checked = checked
        .await
        .unwrap_or_else(|| Err("failed to check the claims".to_owned()));
    Ok(Accepted {
        claims: Some(checked.map_err(Refused::new)?),
        ..Accepted::default()
    })
}
