//! The fields of an index, of its entries and of what is in those: names, types and order of Helm's structs.

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Flag,
    Time,
    Texts,
    TextMap,
    /// A list of pointers to a struct.
    Structs(&'static Struct),
    /// A list of anything.
    Anything,
    /// A map of anything.
    AnyMap,
}

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// True if it is written when it is empty, too.
    pub(crate) keep_empty: bool,
    /// True if it belongs to `Metadata`, which an entry embeds.
    pub(crate) promoted: bool,
}

/// A struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Struct {
    /// Its name, for errors.
    pub(crate) name: &'static str,
    /// Fields that lead to it from the index, for errors.
    pub(crate) path: &'static str,
    pub(crate) fields: &'static [Field],
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        keep_empty: false,
        promoted: false,
    }
}

const fn kept(name: &'static str, kind: Kind) -> Field {
    Field {
        keep_empty: true,
        ..field(name, kind)
    }
}

const fn promoted(field: Field) -> Field {
    Field {
        promoted: true,
        ..field
    }
}

const MAINTAINER: Struct = Struct {
    name: "Maintainer",
    path: "entries.maintainers",
    fields: &[
        field("name", Kind::Text),
        field("email", Kind::Text),
        field("url", Kind::Text),
    ],
};

const DEPENDENCY: Struct = Struct {
    name: "Dependency",
    path: "entries.dependencies",
    fields: &[
        kept("name", Kind::Text),
        field("version", Kind::Text),
        kept("repository", Kind::Text),
        field("condition", Kind::Text),
        field("tags", Kind::Texts),
        field("enabled", Kind::Flag),
        field("import-values", Kind::Anything),
        field("alias", Kind::Text),
    ],
};

/// `chart.Metadata`.
pub(crate) const METADATA: [Field; 17] = [
    field("name", Kind::Text),
    field("home", Kind::Text),
    field("sources", Kind::Texts),
    field("version", Kind::Text),
    field("description", Kind::Text),
    field("keywords", Kind::Texts),
    field("maintainers", Kind::Structs(&MAINTAINER)),
    field("icon", Kind::Text),
    field("apiVersion", Kind::Text),
    field("condition", Kind::Text),
    field("tags", Kind::Text),
    field("appVersion", Kind::Text),
    field("deprecated", Kind::Flag),
    field("annotations", Kind::TextMap),
    field("kubeVersion", Kind::Text),
    field("dependencies", Kind::Structs(&DEPENDENCY)),
    field("type", Kind::Text),
];

/// `repo.ChartVersion`.
pub(crate) const CHART_VERSION: Struct = Struct {
    name: "ChartVersion",
    path: "entries",
    fields: &[
        promoted(METADATA[0]),
        promoted(METADATA[1]),
        promoted(METADATA[2]),
        promoted(METADATA[3]),
        promoted(METADATA[4]),
        promoted(METADATA[5]),
        promoted(METADATA[6]),
        promoted(METADATA[7]),
        promoted(METADATA[8]),
        promoted(METADATA[9]),
        promoted(METADATA[10]),
        promoted(METADATA[11]),
        promoted(METADATA[12]),
        promoted(METADATA[13]),
        promoted(METADATA[14]),
        promoted(METADATA[15]),
        promoted(METADATA[16]),
        kept("urls", Kind::Texts),
        kept("created", Kind::Time),
        field("removed", Kind::Flag),
        field("digest", Kind::Text),
        field("checksum", Kind::Text),
        field("engine", Kind::Text),
        field("tillerVersion", Kind::Text),
        field("url", Kind::Text),
    ],
};

/// `repo.IndexFile` without its entries.
pub(crate) const INDEX: Struct = Struct {
    name: "IndexFile",
    path: "",
    fields: &[
        field("serverInfo", Kind::AnyMap),
        kept("apiVersion", Kind::Text),
        kept("generated", Kind::Time),
        field("publicKeys", Kind::Texts),
        field("annotations", Kind::TextMap),
    ],
};

/// The field that a name means: the one of that name, else the first that differs in case only.
pub(crate) fn position(fields: &[Field], name: &str) -> Option<usize> {
    let exact = fields.iter().position(|field| field.name == name);
    exact.or_else(|| fields.iter().position(|field| folds_to(name, field.name)))
}

/// Returns whether two names are equal but for case, as encoding/json sees it: also the Kelvin sign and the long s are letters.
pub(crate) fn folds_to(name: &str, field: &str) -> bool {
    let folded = |c: char| match c {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(folded).eq(field.chars().map(folded))
}
