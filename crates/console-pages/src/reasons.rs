//! What the reasons of conditions mean, and what to do. The book has the same table (docs/operations/reasons.md).

use crate::View;

/// A reason, what it means in English and in German.
type Row = (&'static str, &'static str, &'static str);

/// What a reason means; None for one that says it itself, or is not known.
pub fn explained(view: &View, reason: &str) -> Option<&'static str> {
    let (_, english, german) = REASONS.iter().find(|(known, ..)| *known == reason)?;
    Some(match view.texts.code {
        "de" => german,
        _ => english,
    })
}

#[rustfmt::skip] // one line for each text
static REASONS: [Row; 51] = [
    // Any kind.
    ("AccessDenied",
        "The owner of what it refers to, or a VerificationPolicy, does not allow its use from this namespace.",
        "Der Eigentümer dessen, worauf es verweist, oder eine VerificationPolicy erlaubt die Nutzung aus diesem Namespace nicht."),
    ("AuthenticationFailed",
        "A Secret is missing or lacks a key, or its credentials are refused.",
        "Ein Secret oder ein Schlüssel darin fehlt, oder die Zugangsdaten werden abgelehnt."),
    ("DependencyNotReady",
        "Something that dependsOn names is not ready. It goes on by itself when that is.",
        "Etwas, das dependsOn nennt, ist nicht bereit. Es geht von selbst weiter, sobald es bereit ist."),
    ("FeatureGateDisabled",
        "The controller runs without a feature gate that this needs.",
        "Der Controller läuft ohne ein Feature-Gate, das hierfür nötig ist."),
    ("InvalidCELExpression",
        "A CEL expression in the spec cannot be compiled. Nothing happens until the spec is changed.",
        "Ein CEL-Ausdruck in der Spec ist nicht übersetzbar. Bis die Spec geändert ist, geschieht nichts."),
    ("ProgressingWithRetry",
        "It failed, and is tried again by itself.",
        "Es ist fehlgeschlagen und wird von selbst wiederholt."),
    ("VerificationError",
        "The signature is missing, or is not of a key or identity that is trusted; or a VerificationPolicy does not let the source in.",
        "Die Signatur fehlt oder ist von keinem vertrauten Schlüssel und keiner vertrauten Identität; oder eine VerificationPolicy lässt die Quelle nicht zu."),
    // Kustomizations and HelmReleases.
    ("ArtifactFailed",
        "The source has no artifact that can be used. Look at the source.",
        "Die Quelle hat kein Artefakt, das nutzbar ist. Sieh dir die Quelle an."),
    ("BuildFailed",
        "The manifests cannot be built. The message names file and line.",
        "Die Manifeste lassen sich nicht bauen. Die Meldung nennt Datei und Zeile."),
    ("Frozen",
        "Something new waits for the end of a Freeze. The message says which, and until when.",
        "Etwas Neues wartet auf das Ende eines Freeze. Die Meldung sagt, auf welches und bis wann."),
    ("HealthCheckCanceled",
        "A newer change ended the wait for health.",
        "Eine neuere Änderung hat das Warten auf Gesundheit beendet."),
    ("HealthCheckFailed",
        "It was applied, but objects did not become healthy within spec.timeout. The message names them.",
        "Es wurde angewendet, aber Objekte wurden nicht innerhalb von spec.timeout gesund. Die Meldung nennt sie."),
    ("ImageVerificationFailed",
        "Images do not meet a VerificationPolicy. The message names image, policy and cause.",
        "Images erfüllen eine VerificationPolicy nicht. Die Meldung nennt Image, Richtlinie und Ursache."),
    ("InstallFailed",
        "The first release failed. The message says at which object; spec.install.remediation says what happens next.",
        "Das erste Release ist fehlgeschlagen. Die Meldung sagt, an welchem Objekt; spec.install.remediation sagt, was folgt."),
    ("PruneFailed",
        "Objects that left the source could not be deleted.",
        "Objekte, die nicht mehr in der Quelle sind, konnten nicht gelöscht werden."),
    ("PruneRefused",
        "More would be deleted than is allowed without a confirmation. The message says how to confirm it.",
        "Es würde mehr gelöscht, als ohne Bestätigung erlaubt ist. Die Meldung sagt, wie man bestätigt."),
    ("ReconciliationFailed",
        "The API server refused an object. The message names the object and the cause.",
        "Der API-Server hat ein Objekt abgelehnt. Die Meldung nennt Objekt und Ursache."),
    ("RolledBack",
        "What ran before is delivered again: the newest revision was not healthy, or a person went back.",
        "Was vorher lief, wird wieder ausgeliefert: Die neueste Revision war nicht gesund, oder jemand ist zurückgegangen."),
    ("RollbackFailed",
        "The rollback to an earlier revision failed.",
        "Das Zurückgehen zu einer früheren Revision ist fehlgeschlagen."),
    ("TestFailed",
        "The tests of the chart failed.",
        "Die Tests des Charts sind fehlgeschlagen."),
    ("UninstallFailed",
        "The release could not be uninstalled.",
        "Das Release ließ sich nicht deinstallieren."),
    ("UpgradeFailed",
        "The upgrade failed. The message says at which object; spec.upgrade.remediation says what happens next.",
        "Das Upgrade ist fehlgeschlagen. Die Meldung sagt, an welchem Objekt; spec.upgrade.remediation sagt, was folgt."),
    // Sources.
    ("BucketOperationFailed",
        "The bucket cannot be reached, does not exist, or refuses the credentials.",
        "Der Bucket ist nicht erreichbar, existiert nicht oder lehnt die Zugangsdaten ab."),
    ("GitOperationFailed",
        "The Git server cannot be reached, refuses the credentials, or has no such branch, tag or commit.",
        "Der Git-Server ist nicht erreichbar, lehnt die Zugangsdaten ab oder hat keinen solchen Branch, Tag oder Commit."),
    ("IndexationFailed",
        "The index of the Helm repository cannot be fetched or read.",
        "Der Index des Helm-Repositorys ist nicht zu bekommen oder nicht lesbar."),
    ("InvalidProviderConfiguration",
        "spec.provider does not fit the rest of the spec, or the identity at the cloud provider is not set up.",
        "spec.provider passt nicht zum Rest der Spec, oder die Identität beim Cloud-Anbieter ist nicht eingerichtet."),
    ("InvalidSTSConfiguration",
        "spec.sts does not fit the provider, or its endpoint does not give credentials.",
        "spec.sts passt nicht zum Anbieter, oder sein Endpunkt gibt keine Zugangsdaten."),
    ("OCIArtifactLayerOperationFailed",
        "The image was pulled, but no layer of it can be used. See spec.layerSelector.",
        "Das Image wurde geholt, aber keine Schicht davon ist nutzbar. Siehe spec.layerSelector."),
    ("OCIArtifactPullFailed",
        "The registry cannot be reached, refuses the credentials, or has no such tag or digest.",
        "Die Registry ist nicht erreichbar, lehnt die Zugangsdaten ab oder hat keinen solchen Tag oder Digest."),
    ("StorageFull",
        "The storage of source-controller is full.",
        "Der Speicher des source-controllers ist voll."),
    ("SourceFetchFailed",
        "A source that this one is made of cannot be had.",
        "Eine Quelle, aus der diese gemacht ist, ist nicht zu bekommen."),
    ("URLInvalid",
        "The address in the spec cannot be used.",
        "Die Adresse in der Spec ist nicht nutzbar."),
    ("ValidationFailed",
        "The spec contradicts itself. Nothing happens until it is changed.",
        "Die Spec widerspricht sich. Bis sie geändert ist, geschieht nichts."),
    // Image automation.
    ("BranchOccupied",
        "The branch of the proposal has commits of others.",
        "Der Branch des Vorschlags hat Commits von anderen."),
    ("ChangeReverted",
        "Someone took the change back in Git; it is not made again.",
        "Jemand hat die Änderung in Git zurückgenommen; sie wird nicht noch einmal gemacht."),
    ("EmptyGitRepository",
        "The repository has no commit yet.",
        "Das Repository hat noch keinen Commit."),
    ("ImageURLInvalid",
        "spec.image is no name of an image.",
        "spec.image ist kein Name eines Images."),
    ("InvalidPolicy",
        "The policy cannot be understood. Nothing happens until the spec is changed.",
        "Die Policy ist nicht verständlich. Bis die Spec geändert ist, geschieht nichts."),
    ("MarkersIgnored",
        "Markers in files name a policy that does not exist, or cannot be set.",
        "Markierungen in Dateien nennen eine Policy, die es nicht gibt, oder lassen sich nicht setzen."),
    ("NoEligibleTag",
        "No tag fits the policy. windlass why says which rule refuses which tag.",
        "Kein Tag passt zur Policy. windlass why sagt, welche Regel welchen Tag ablehnt."),
    ("PullRequestDeclined",
        "The pull request was closed; the same change is not proposed again.",
        "Der Pull-Request wurde geschlossen; dieselbe Änderung wird nicht noch einmal vorgeschlagen."),
    ("TooManyPullRequests",
        "As many pull requests are open as the ChangePolicy allows.",
        "Es sind so viele Pull-Requests offen, wie die ChangePolicy erlaubt."),
    // Pipelines and changes.
    ("ChangeNotPossible",
        "A file, its content or a reference is not accepted, or the manifest was changed in Git since it was read.",
        "Eine Datei, ihr Inhalt oder ein Verweis wird nicht angenommen, oder das Manifest hat sich in Git geändert, seit es gelesen wurde."),
    ("Comparing",
        "Pull requests wait until it is their turn to be compared.",
        "Pull-Requests warten, bis sie mit dem Vergleich an der Reihe sind."),
    ("InvalidAnnotation",
        "What people decided stands in an annotation that cannot be read; nothing is promoted.",
        "Was Menschen entschieden haben, steht in einer Annotation, die nicht lesbar ist; nichts wird befördert."),
    ("InvalidSpec",
        "The environments cannot work as they are written; nothing is promoted.",
        "Die Umgebungen können nicht so funktionieren, wie sie geschrieben sind; nichts wird befördert."),
    ("NotCompared",
        "A pull request could not be compared, or none could be listed. It is tried again.",
        "Ein Pull-Request konnte nicht verglichen werden, oder keiner war aufzulisten. Es wird noch einmal versucht."),
    ("NotProposed",
        "No pull request could be opened. The message says whether it is tried again.",
        "Es konnte kein Pull-Request eröffnet werden. Die Meldung sagt, ob es noch einmal versucht wird."),
    ("PullRequestOpen",
        "A pull request waits for people.",
        "Ein Pull-Request wartet auf Menschen."),
    ("TargetNotReadable",
        "A target cannot be read, or no change could be made for it. The others go on.",
        "Ein Ziel ist nicht lesbar, oder es konnte keine Änderung dafür gemacht werden. Die anderen gehen weiter."),
    ("WaitingForWindow",
        "The windows of the ChangePolicy are closed.",
        "Die Zeitfenster der ChangePolicy sind geschlossen."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_has_the_same_table() {
        let book = include_str!("../../../docs/operations/reasons.md");
        let rows: Vec<&str> = book.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> = REASONS
            .iter()
            .map(|(reason, english, _)| format!("| `{reason}` | {english} |"))
            .collect();
        assert_eq!(rows, expected, "docs/operations/reasons.md");
    }

    #[test]
    fn no_reason_is_there_twice() {
        let mut names: Vec<&str> = REASONS.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), REASONS.len());
    }
}
