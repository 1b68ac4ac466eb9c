//! Every text of ours. A language is a value of [`Texts`]: one that lacks a text does not compile.

macro_rules! texts {
    ($($name:ident: $english:literal, $german:literal;)*) => {
        /// The texts of a language.
        #[derive(Debug, PartialEq, Eq)]
        pub struct Texts {
            $(
                #[doc = $english]
                pub $name: &'static str,
            )*
        }

        /// English.
        pub static ENGLISH: Texts = Texts { $($name: $english,)* };
        /// German.
        pub static GERMAN: Texts = Texts { $($name: $german,)* };
    };
}

texts! {
    code: "en", "de";
    skip: "Skip to content", "Zum Inhalt";
    home: "Home", "Start";
    applications: "Applications", "Anwendungen";
    sources: "Sources", "Quellen";
    pipelines: "Pipelines", "Pipelines";
    board: "Releases", "Releases";
    release: "Release", "Release";
    environment: "Environment", "Umgebung";
    started_by: "Started by", "Ausgelöst von";
    no_releases: "No release was made yet: a first environment has to be ready.", "Es gibt noch kein Release: eine erste Umgebung muss bereit sein.";
    soaks_until: "must be healthy until", "muss gesund sein bis";
    after: "after", "nach";
    waits: "Waits", "Wartet";
    here: "Here", "Hier";
    was_here: "Was here", "War hier";
    taken_back: "Taken back", "Zurückgenommen";
    held: "Held", "Zurückgehalten";
    needs_approval: "needs approval of release", "braucht die Freigabe von Release";
    approved_by: "approved by", "freigegeben von";
    is_held: "does not get release", "bekommt nicht Release";
    newest: "newest, or all", "neuestes oder alle";
    all_environments: "all", "alle";
    hold_for: "Hold for", "Zurückhalten für";
    hold_hint: "12h; empty: until it is released", "12h; leer: bis zur Aufhebung";
    promote: "Promote", "Befördern";
    approve: "Approve", "Freigeben";
    roll_back: "Roll back", "Zurückgehen";
    hold: "Hold", "Zurückhalten";
    end_hold: "Release hold", "Aufheben";
    waiting_for_people: "Waiting for approval or held", "Wartet auf Freigabe oder zurückgehalten";
    images: "Images", "Images";
    notifications: "Notifications", "Meldungen";
    logs: "Logs", "Protokolle";
    show_logs: "Show logs", "Protokolle zeigen";
    no_pods: "It has no Pods.", "Es hat keine Pods.";
    no_lines: "The log is empty.", "Das Protokoll ist leer.";
    container: "Container", "Container";
    restarts: "Restarts", "Neustarts";
    lines: "last lines", "letzte Zeilen";
    lines_with: "Lines with", "Zeilen mit";
    follow: "follow", "mitlesen";
    before_restart: "before the restart", "vor dem Neustart";
    events: "Events", "Ereignisse";
    show_events: "Show Events", "Ereignisse zeigen";
    no_events: "There are no Events.", "Es gibt keine Ereignisse.";
    chosen_by: "chosen by", "gewählt von";
    running: "Pods", "Pods";
    workload: "Workload", "Workload";
    image: "Image", "Image";
    digest: "Digest", "Digest";
    pods: "Ready of", "Bereit von";
    newer: "newer", "neuer";
    fleet: "Fleet", "Flotte";
    history: "History", "Verlauf";
    profile: "Profile", "Profil";
    help: "Help", "Hilfe";
    sign_out: "Sign out", "Abmelden";
    search: "Search", "Suchen";
    search_hint: "name, or ns: kind: cluster: status: commit: image: chart:", "Name, oder ns: kind: cluster: status: commit: image: chart:";
    search_shortcut: "Press / to search, ? for help", "/ zum Suchen, ? für Hilfe";
    needs_you: "What needs you", "Was dich braucht";
    favourites: "Favourites", "Favoriten";
    favourite: "Favourite", "Favorit";
    all_well: "Nothing needs you.", "Nichts braucht dich.";
    failing: "Failing", "Fehlgeschlagen";
    stuck: "In progress for more than 10 minutes", "Seit über 10 Minuten in Arbeit";
    suspended: "Suspended", "Angehalten";
    clusters_away: "Clusters that cannot be reached", "Cluster, die nicht erreichbar sind";
    affected: "affected", "betroffen";
    ready: "Ready", "Bereit";
    failed: "Failed", "Fehlgeschlagen";
    in_progress: "In progress", "In Arbeit";
    unknown: "Unknown", "Unbekannt";
    behind: "Behind its source", "Hinter der Quelle";
    not_ready: "Not ready", "Nicht bereit";
    absent: "Absent", "Nicht vorhanden";
    status: "Status", "Status";
    kind: "Kind", "Art";
    namespace: "Namespace", "Namespace";
    cluster: "Cluster", "Cluster";
    of_total: "objects", "Objekte";
    next_page: "Next page", "Nächste Seite";
    first_page: "First page", "Erste Seite";
    no_rows: "No object matches.", "Kein Objekt passt.";
    sort: "Sort by", "Sortieren nach";
    by_name: "by name", "nach Name";
    by_status: "failing first", "Fehlgeschlagene zuerst";
    by_newest: "newest change first", "neueste Änderung zuerst";
    by_oldest: "oldest change first", "älteste Änderung zuerst";
    clear: "Clear filters", "Filter entfernen";
    silent: "Not all is shown. These clusters do not answer:", "Nicht alles ist zu sehen. Diese Cluster antworten nicht:";
    select: "Select", "Auswählen";
    select_all: "Select all on this page", "Alle auf dieser Seite auswählen";
    selected: "Selected objects", "Ausgewählte Objekte";
    reconcile: "Reconcile", "Abgleichen";
    with_source: "with its source", "mit Quelle";
    suspend: "Suspend", "Anhalten";
    resume: "Resume", "Fortsetzen";
    restart: "Restart", "Neu starten";
    download: "Download", "Herunterladen";
    reason: "Reason", "Grund";
    succeeded: "Succeeded", "Gelungen";
    done: "Done", "Erledigt";
    not_done: "Not done", "Nicht erledigt";
    source: "source", "Quelle";
    state_at: "State at", "Stand vom";
    at_hint: "Time, or how long ago: 2026-11-26T10:00:00Z, 3h, 7d", "Zeitpunkt, oder wie lange her: 2026-11-26T10:00:00Z, 3h, 7d";
    show: "Show", "Zeigen";
    new: "New", "Neu";
    edit: "Edit through Git", "Über Git ändern";
    change_requests: "Change requests", "Änderungsanträge";
    open_requests: "Changes that wait for a merge", "Änderungen, die auf einen Merge warten";
    pull_request: "Pull request", "Pull-Request";
    through_git: "Nothing is written to the cluster: a pull request is opened, and what is merged is delivered.", "Nichts wird in den Cluster geschrieben: ein Pull-Request wird eröffnet, und was gemergt ist, wird ausgeliefert.";
    which_kustomization: "It applies the manifest. The file goes into its folder.", "Sie wendet das Manifest an. Die Datei kommt in ihren Ordner.";
    which_policy: "How the pull request is opened.", "Wie der Pull-Request eröffnet wird.";
    no_kustomizations: "There is no Kustomization here that is built from a GitRepository and that you may get.", "Es gibt hier keine Kustomization aus einem GitRepository, die du lesen darfst.";
    no_policies: "It cannot be proposed: there is no ChangePolicy of the type PullRequest that may be used for this GitRepository and that you may get.", "Es kann nicht vorgeschlagen werden: es gibt keine ChangePolicy vom Typ PullRequest, die für dieses GitRepository gilt und die du lesen darfst.";
    path_in_repository: "Path in the repository", "Pfad im Repository";
    path_hint: "Empty: a file of its own in the folder of the Kustomization.", "Leer: eine eigene Datei im Ordner der Kustomization.";
    manifest: "Manifest", "Manifest";
    chart: "Chart", "Chart";
    title: "Title", "Titel";
    outside: "The file is outside of the folder of this Kustomization: others may use it, too.", "Die Datei liegt außerhalb des Ordners dieser Kustomization: andere können sie mitbenutzen.";
    in_git: "In Git", "In Git";
    in_cluster: "In the cluster", "Im Cluster";
    preview: "Show what it would change", "Zeigen, was es ändern würde";
    open_pull_request: "Open pull request", "Pull-Request eröffnen";
    go_on: "Continue", "Weiter";
    graph: "Graph", "Graph";
    too_many: "filter, to see less", "filtern, um weniger zu sehen";
    wall: "Clusters", "Cluster";
    away: "Cannot be reached", "Nicht erreichbar";
    find: "Go to", "Gehe zu";
    find_hint: "a page, or the name of an object", "eine Seite oder der Name eines Objekts";
    back: "Back", "Zurück";
    delivery: "Delivery", "Auslieferung";
    commit: "Commit", "Commit";
    artifact: "Artifact", "Artefakt";
    built: "Built", "Gebaut";
    applied: "Applied", "Angewendet";
    health: "Healthy", "Gesund";
    objects: "Objects", "Objekte";
    conditions: "Conditions", "Zustände";
    differences: "Differences", "Unterschiede";
    compare: "Compare", "Vergleichen";
    compare_with: "Compare with", "Vergleichen mit";
    from: "From", "Von";
    to: "To", "Nach";
    side_hint: "CLUSTER/KIND/NAMESPACE/NAME, or …@REVISION of a release", "CLUSTER/KIND/NAMESPACE/NAME, oder …@REVISION eines Releases";
    values: "Values", "Werte";
    show_values: "Show what it is built with, and where each value is from", "Zeigen, womit es gebaut wird und woher jeder Wert kommt";
    no_values: "It is built with no values of its own.", "Es wird ohne eigene Werte gebaut.";
    path: "Path", "Pfad";
    value: "Value", "Wert";
    origin: "Origin", "Herkunft";
    next_releases: "Next releases", "Nächste Releases";
    show_next_releases: "Show what they would change in files", "Zeigen, was sie in Dateien ändern";
    show_differences: "Compare with what is applied now", "Mit dem Ist-Stand vergleichen";
    no_differences: "There are no differences.", "Es gibt keine Unterschiede.";
    raw: "Object", "Objekt";
    commands: "Commands", "Befehle";
    copy: "Copy", "Kopieren";
    copied: "Copied", "Kopiert";
    since_before: "for", "seit";
    since_label: "Since", "Seit";
    until: "Until", "Bis";
    name: "Name", "Name";
    in_source: "in the source", "in der Quelle";
    deployments: "Deployments", "Auslieferungen";
    day: "day", "Tag";
    days: "days", "Tage";
    lead_time: "Lead time", "Durchlaufzeit";
    failure_rate: "Change failure rate", "Fehlerquote";
    recovery: "Time to recover", "Wiederherstellung";
    revision: "Revision", "Revision";
    author: "Author", "Autor";
    when: "When", "Wann";
    who: "Who", "Wer";
    what: "What", "Was";
    took: "Took", "Dauer";
    outcome: "Outcome", "Ergebnis";
    no_history: "No delivery is recorded.", "Keine Auslieferung ist verzeichnet.";
    actions_by_hand: "Actions", "Eingriffe";
    change: "Change", "Änderung";
    change_hint: "A commit, a digest or the version of a chart", "Ein Commit, ein Digest oder die Version eines Charts";
    there: "Delivered", "Ausgeliefert";
    on_its_way: "On its way", "Unterwegs";
    not_there: "Not delivered", "Nicht ausgeliefert";
    nobody_has_it: "No source and no application has it.", "Keine Quelle und keine Anwendung hat sie.";
    versions: "versions", "Versionen";
    you_are: "You are", "Du bist";
    groups: "Groups", "Gruppen";
    session_until: "Session ends", "Sitzung endet";
    signed_in_by: "Signed in by", "Angemeldet durch";
    language: "Language", "Sprache";
    not_found: "There is no such page", "Diese Seite gibt es nicht";
    problem: "This cannot be shown", "Das kann nicht gezeigt werden";
    sign_in: "Sign in", "Anmelden";
    stale: "Connection lost: reload the page", "Verbindung verloren: Seite neu laden";
    keys: "Keys", "Tasten";
    key_search: "search", "suchen";
    key_home: "home", "Start";
    key_apps: "applications", "Anwendungen";
    key_history: "history", "Verlauf";
    key_sources: "sources", "Quellen";
    key_fleet: "fleet", "Flotte";
    key_change: "change", "Änderung";
    key_select: "select the row", "Zeile auswählen";
    key_move: "next and previous row", "nächste und vorige Zeile";
    key_open: "open the row", "Zeile öffnen";
    close: "Close", "Schließen";
    design: "Design", "Gestaltung";
}

/// The languages.
pub static ALL: [&Texts; 2] = [&ENGLISH, &GERMAN];

/// The language that a browser prefers, by its header `Accept-Language`; English if there is none of ours.
pub fn preferred(header: &str) -> &'static Texts {
    let mut wanted: Vec<(f32, &str)> = header
        .split(',')
        .take(32)
        .map(|part| {
            let (language, weight) = part.split_once(";q=").unwrap_or((part, "1"));
            let language = language.trim().split('-').next().unwrap_or_default();
            (weight.trim().parse().unwrap_or(0.0), language)
        })
        .collect();
    wanted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let known = |language: &str| ALL.into_iter().find(|texts| texts.code == language);
    wanted
        .into_iter()
        .find_map(|(_, language)| known(language))
        .unwrap_or(&ENGLISH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_browsers_first_that_there_is() {
        for (header, code) in [
            ("", "en"),
            ("de", "de"),
            ("de-AT,de;q=0.9,en;q=0.8", "de"),
            ("fr,de;q=0.5,en;q=0.8", "en"),
            ("en;q=x, de;q=0.1", "de"),
            ("fr", "en"),
        ] {
            assert_eq!(preferred(header).code, code, "{header}");
        }
    }
}
