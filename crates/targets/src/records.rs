//! Hosts in JSON and CSV.

use serde_json::Value;

use crate::{Target, TargetError, TargetProblem, options::apply_option, target::expand_spec};

/// What the column or field with the host is called.
const HOST_NAMES: &[&str] = &["host", "name", "hostname", "target"];

/// Reads JSON: a list of specs (`"root@web[1-3]:22"`) and of objects with `host` (or `name`, `hostname`,
/// `target`), `user`, `port` and `options`, an object of ssh_config keywords and their values, several in a list; or an object with such a list as
/// `hosts`; or such objects one after the other (JSON Lines). Other fields are passed over, so that results can
/// be read back as lists.
///
/// # Errors
/// What is no such JSON, or no host.
pub fn parse_json(label: &str, contents: &[u8]) -> Result<Vec<Target>, TargetError> {
    let wrong = |problem| TargetError::new("", problem).in_file(label);
    let mut targets = Vec::new();
    for value in serde_json::Deserializer::from_slice(contents).into_iter::<Value>() {
        let value = value.map_err(|error| wrong(TargetProblem::Json(error.to_string())))?;
        let inner = value.get("hosts").unwrap_or(&value);
        let items = inner
            .as_array()
            .map_or(std::slice::from_ref(inner), Vec::as_slice);
        for item in items {
            json_host(item, &mut targets).map_err(|error| error.in_file(label))?;
        }
    }
    Ok(targets)
}

fn json_host(item: &Value, targets: &mut Vec<Target>) -> Result<(), TargetError> {
    let shape = || {
        TargetError::new(
            &item.to_string(),
            TargetProblem::JsonShape("a host, or an object with \"host\""),
        )
    };
    if let Some(spec) = item.as_str() {
        return expand_spec(spec, targets);
    }
    let field = |name: &str| match item.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let host = HOST_NAMES
        .iter()
        .find_map(|name| field(name))
        .ok_or_else(shape)?;
    let new = targets.len();
    expand_spec(&host, targets)?;
    let mut options: Vec<(&str, String)> = Vec::new();
    options.extend(field("user").map(|user| ("User", user)));
    options.extend(field("port").map(|port| ("Port", port)));
    for (keyword, value) in item
        .get("options")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let values = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        let text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        options.extend(values.iter().map(|value| (keyword.as_str(), text(value))));
    }
    apply(&mut targets[new..], &options)
}

/// Reads CSV (RFC 4180). A first line that names a column `host` (or `name`, `hostname`, `target`) is a header:
/// then `user` and `port` are read too, a column `option:KEYWORD` sets a keyword of ssh_config, and others are
/// passed over. Without a header the first column is the host. Empty fields say nothing.
///
/// # Errors
/// What is no CSV, or no host, with its line.
pub fn parse_csv(label: &str, contents: &[u8]) -> Result<Vec<Target>, TargetError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(contents);
    let mut columns: Option<Vec<String>> = None;
    let mut targets = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error
                .position()
                .map_or(0, |position| position.line() as usize);
            TargetError::new("", TargetProblem::Csv(error.to_string())).at(label, line)
        })?;
        let line = record
            .position()
            .map_or(0, |position| position.line() as usize);
        let columns = match &columns {
            Some(columns) => columns,
            None => {
                let names: Vec<String> = record.iter().map(str::to_ascii_lowercase).collect();
                let is_header = names.iter().any(|name| HOST_NAMES.contains(&name.as_str()));
                let header = columns.insert(if is_header {
                    names
                } else {
                    vec![HOST_NAMES[0].to_owned()]
                });
                if is_header {
                    continue;
                }
                header
            }
        };
        csv_host(columns, &record, &mut targets).map_err(|error| error.at(label, line))?;
    }
    Ok(targets)
}

fn csv_host(
    columns: &[String],
    record: &csv::StringRecord,
    targets: &mut Vec<Target>,
) -> Result<(), TargetError> {
    let new = targets.len();
    let mut options = Vec::new();
    for (column, field) in columns
        .iter()
        .zip(record)
        .filter(|(_, field)| !field.is_empty())
    {
        match column.as_str() {
            "user" => options.push(("User", field.to_owned())),
            "port" => options.push(("Port", field.to_owned())),
            name if HOST_NAMES.contains(&name) && targets.len() == new => {
                expand_spec(field, targets)?
            }
            name => {
                let keyword = name.strip_prefix("option:");
                options.extend(keyword.map(|keyword| (keyword, field.to_owned())));
            }
        }
    }
    match targets.len() == new && !options.is_empty() {
        true => Err(TargetError::new("", TargetProblem::EmptyName)),
        false => apply(&mut targets[new..], &options),
    }
}

fn apply(targets: &mut [Target], options: &[(&str, String)]) -> Result<(), TargetError> {
    for target in targets {
        for (keyword, value) in options {
            let wrong = |problem| TargetError::new(&format!("{keyword}={value}"), problem);
            apply_option(target, keyword, value).map_err(wrong)?;
        }
    }
    Ok(())
}
