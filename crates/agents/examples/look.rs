//! What a profile makes of a screen: `look AGENT [TITLE [ROW,COLUMN]] < SCREEN`. For whoever writes a profile.

use std::io::Read;

use wharf_agents::{Look, Profiles, ProjectFile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let agent = arguments.next().ok_or("which agent?")?;
    let title = arguments.next().unwrap_or_default();
    let cursor = arguments.next().unwrap_or_default();
    let (row, column) = cursor.split_once(',').unwrap_or(("0", "0"));
    let mut screen = String::new();
    std::io::stdin().read_to_string(&mut screen)?;
    let rows: Vec<String> = screen.lines().map(|row| row.trim_end().to_owned()).collect();
    let look =
        Look { rows: &rows, cursor: (row.parse()?, column.parse()?), title: &title, ..Look::default() };
    // Whoever writes a profile trusts what stands here.
    let project = match ProjectFile::find(&std::env::current_dir()?, None) {
        Some(Ok(file)) => Some(Profiles::consider(None, &file, true)?),
        _ => None,
    };
    for told in project.iter().flat_map(wharf_model::Project::told) {
        eprintln!("{told}");
    }
    let profile = Profiles::load(None, project.as_ref())?.named(&agent)?;
    let findings = profile.recognise(&look);
    for finding in &findings {
        println!("{:3} {:8} {}: {}", finding.weight, finding.state.as_str(), finding.rule, finding.evidence);
    }
    let decided = profile.decide(&findings);
    println!("state: {}", decided.map_or("nothing tells", |finding| finding.state.as_str()));
    println!("composer: {:?}", profile.composer(&look));
    println!("question: {:#?}", profile.question(&look));
    Ok(())
}
