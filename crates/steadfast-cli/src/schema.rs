//! `steadfast schema`: the table of keys as a JSON Schema, for editors.

use steadfast::config;

use crate::args::SchemaArgs;
use crate::exit::Exit;
use crate::output;

/// Prints the schema to standard output.
pub(crate) fn run(args: &SchemaArgs) -> Exit {
    let schema = match config::schema(args.table.as_deref().unwrap_or_default()) {
        Ok(schema) => schema,
        Err(problems) => {
            output::note(&format!("error: --table: {problems}"));
            return Exit::Usage;
        }
    };
    match output::text(&format!("{schema:#}\n")) {
        Ok(()) => Exit::Ok,
        Err(_) => Exit::Failed,
    }
}
