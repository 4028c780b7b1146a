//! `steadfast schema`: the tables of keys as a JSON Schema, for editors.

use steadfast::config;
use steadfast_sim::{outage, scenario};

use crate::args::{SchemaArgs, SchemaOf};
use crate::exit::Exit;
use crate::output;

/// Prints the schema to standard output.
pub(crate) fn run(args: &SchemaArgs) -> Exit {
    let schema = match (args.of, &args.table) {
        (SchemaOf::Config, table) => config::schema(table.as_deref().unwrap_or_default()).map_err(|it| it.to_string()),
        (SchemaOf::Scenario, None) => Ok(scenario::schema()),
        (SchemaOf::Simulation, None) => Ok(outage::file::schema()),
        (SchemaOf::Scenario, Some(_)) => Err("a scenario has its tables at the top level".to_owned()),
        (SchemaOf::Simulation, Some(_)) => Err("a simulation has its tables at the top level".to_owned()),
    };
    let schema = match schema {
        Ok(schema) => schema,
        Err(why) => {
            output::note(&format!("error: --table: {why}"));
            return Exit::Usage;
        }
    };
    match output::text(&format!("{schema:#}\n")) {
        Ok(()) => Exit::Ok,
        Err(_) => Exit::Failed,
    }
}
