//! Names in a program: labels, variables, texts, times and transactions.

use wirestorm_model::program::{Label, TextVariable, TimeVariable, TransactionId, Value, Variable};

use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

/// Predefined values of every flow.
pub(super) const PREDEFINED_VALUES: [(&str, Value); 5] = [
    ("flow", Value::Flow),
    ("client", Value::Client),
    ("client_port", Value::ClientPort),
    ("server", Value::Server),
    ("server_port", Value::ServerPort),
];

const TIME: &str = "the name of a time";

/// Names of one program, in order of their first use.
#[derive(Debug, Default)]
pub(super) struct Names {
    variables: Vec<String>,
    times: Vec<String>,
    /// For each time: the path of the first step that uses it, and whether a step remembers it.
    time_uses: Vec<(Option<String>, bool)>,
    texts: Vec<String>,
    /// For each transaction: its name, the path of the first step that ends it, and whether a step
    /// starts it.
    transactions: Vec<(String, Option<String>, bool)>,
    /// Whether a step has received data so far.
    pub(super) receives: bool,
    /// For each label: its name, the path of the first jump to it, and whether it is defined.
    labels: Vec<(String, Option<String>, bool)>,
    /// Maximum depth of nested loops.
    loops: usize,
}

impl Names {
    /// Returns a numeric variable; creates it at its first use.
    pub(super) fn variable(
        &mut self,
        name: &str,
        place: &ValueAt<'_>,
    ) -> Result<Variable, PlanError> {
        refuse_other_kind(name, place, &self.texts, "a text")?;
        let number = number(&mut self.variables, name, place, "variables", Variable::COUNT)?;
        Ok(Variable::named(number))
    }

    /// Creates a variable without a name, after the existing ones.
    pub(super) fn anonymous_variable(&mut self) -> Variable {
        self.variables.push(String::new());
        Variable::named(self.variables.len() - 1)
    }

    /// Returns a text variable; creates it at its first use.
    pub(super) fn text(
        &mut self,
        name: &str,
        place: &ValueAt<'_>,
    ) -> Result<TextVariable, PlanError> {
        refuse_other_kind(name, place, &self.variables, "a number")?;
        let number = number(&mut self.texts, name, place, "texts", TextVariable::COUNT)?;
        Ok(TextVariable::named(number))
    }

    /// Returns the predefined value, variable or text of a name; `None` if there is none so far.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        let flows =
            PREDEFINED_VALUES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let place = |names: &[String]| names.iter().position(|known| known == name);
        let number = || place(&self.variables).map(Variable::named).map(Value::Number);
        flows
            .or_else(number)
            .or_else(|| place(&self.texts).map(TextVariable::named).map(Value::Text))
    }

    /// Lists all names that have a value.
    pub(super) fn values(&self) -> String {
        let flows = PREDEFINED_VALUES.iter().map(|(name, _)| *name);
        let local = self.variables.iter().chain(&self.texts).map(String::as_str);
        flows.chain(local).collect::<Vec<_>>().join(", ")
    }

    /// Records that a step starts or ends a transaction. Returns its name.
    pub(super) fn transaction(
        &mut self,
        place: &ValueAt<'_>,
        starts: bool,
    ) -> Result<String, PlanError> {
        let name = place.string("the name of a transaction")?;
        let known = self.transactions.iter().position(|(other, ..)| other == name);
        let number = match known {
            Some(number) => number,
            None if self.transactions.len() == TransactionId::COUNT => {
                let message =
                    format!("a program has at most {} transactions", TransactionId::COUNT);
                return Err(place.message_error(message));
            }
            None => {
                self.transactions.push((name.to_owned(), None, false));
                self.transactions.len() - 1
            }
        };
        let (_, end, is_started) = &mut self.transactions[number];
        if starts {
            *is_started = true;
        } else {
            end.get_or_insert_with(|| place.path());
        }
        Ok(name.to_owned())
    }

    /// Returns the time that a step remembers.
    pub(super) fn remember(&mut self, place: &ValueAt<'_>) -> Result<TimeVariable, PlanError> {
        let number = self.time_number(place.string(TIME)?, place)?;
        self.time_uses[number].1 = true;
        Ok(TimeVariable::named(number))
    }

    /// Returns a time that a step uses.
    pub(super) fn time(&mut self, place: &ValueAt<'_>) -> Result<TimeVariable, PlanError> {
        self.time_named(place.string(TIME)?, place)
    }

    /// Like [`time`](Self::time), for a name that is not the value at `place`.
    pub(super) fn time_named(
        &mut self,
        name: &str,
        place: &ValueAt<'_>,
    ) -> Result<TimeVariable, PlanError> {
        let number = self.time_number(name, place)?;
        self.time_uses[number].0.get_or_insert_with(|| place.path());
        Ok(TimeVariable::named(number))
    }

    fn time_number(&mut self, name: &str, place: &ValueAt<'_>) -> Result<usize, PlanError> {
        let number = number(&mut self.times, name, place, "times", TimeVariable::COUNT)?;
        self.time_uses.resize(self.times.len(), (None, false));
        Ok(number)
    }

    /// Defines a label.
    pub(super) fn define(&mut self, place: &ValueAt<'_>) -> Result<Label, PlanError> {
        let name = place.string("the name of a label")?;
        let number = self.label(name);
        let (_, _, is_there) = &mut self.labels[number];
        if std::mem::replace(is_there, true) {
            return Err(place.error(format!("a second label {name:?}"), "a unique name"));
        }
        Ok(Label(number as u32))
    }

    /// Returns the label that a step jumps to.
    pub(super) fn jump(&mut self, place: &ValueAt<'_>) -> Result<Label, PlanError> {
        let number = self.label(place.string("the name of a label")?);
        self.labels[number].1.get_or_insert_with(|| place.path());
        Ok(Label(number as u32))
    }

    /// Records the depth of a loop.
    pub(super) fn record_loop_depth(&mut self, depth: usize) {
        self.loops = self.loops.max(depth);
    }

    /// Checks that the program defines all names that it uses, and that its variables and loops
    /// fit: each level of nested loops takes a variable.
    pub(super) fn finish(self, place: &ValueAt<'_>) -> Result<(), PlanError> {
        let found = self.variables.len() + self.loops;
        if found > Variable::COUNT {
            let found = format!("{found} variables and nested loops");
            return Err(place.error(found, format!("at most {}", Variable::COUNT)));
        }
        let unstarted = self.transactions.iter().find(|(_, _, is_started)| !is_started);
        if let Some((name, Some(path), _)) = unstarted {
            let message = format!("found {name:?}, expected a transaction that a step starts");
            return Err(PlanError { path: path.clone(), message });
        }
        let times = self.times.iter().zip(&self.time_uses);
        let unknown = times.clone().find(|(_, (_, is_remembered))| !is_remembered);
        if let Some((name, (Some(path), _))) = unknown {
            let known = times.filter(|(_, (_, is_remembered))| *is_remembered);
            let known: Vec<_> = known.map(|(name, _)| name.as_str()).collect();
            let expected = match known.as_slice() {
                [] => "a time of a step `save_time`, but the program has none".to_owned(),
                known => format!("one of the remembered times: {}", known.join(", ")),
            };
            let message = format!("found {name:?}, expected {expected}");
            return Err(PlanError { path: path.clone(), message });
        }
        let missing = self.labels.iter().find(|(_, _, is_there)| !is_there);
        if let Some((name, Some(path), _)) = missing {
            let labels = self.labels.iter().filter(|(_, _, is_there)| *is_there);
            let labels: Vec<_> = labels.map(|(name, ..)| name.as_str()).collect();
            let expected = match labels.as_slice() {
                [] => "a label of the program, but it has none".to_owned(),
                labels => format!("one of the program's labels: {}", labels.join(", ")),
            };
            let message = format!("found {name:?}, expected {expected}");
            return Err(PlanError { path: path.clone(), message });
        }
        Ok(())
    }

    fn label(&mut self, name: &str) -> usize {
        let known = self.labels.iter().position(|(other, ..)| other == name);
        known.unwrap_or_else(|| {
            self.labels.push((name.to_owned(), None, false));
            self.labels.len() - 1
        })
    }
}

/// Refuses a name that already has a value of another kind.
fn refuse_other_kind(
    name: &str,
    place: &ValueAt<'_>,
    others: &[String],
    kind: &str,
) -> Result<(), PlanError> {
    let flows = PREDEFINED_VALUES.iter().any(|(known, _)| *known == name);
    let kind = if flows { "a predefined value" } else { kind };
    if flows || others.iter().any(|other| other == name) {
        return Err(
            place.message_error(format!("{name:?} is {kind} already: give it another name"))
        );
    }
    Ok(())
}

fn number(
    names: &mut Vec<String>,
    name: &str,
    place: &ValueAt<'_>,
    what: &str,
    most: usize,
) -> Result<usize, PlanError> {
    if let Some(number) = names.iter().position(|other| other == name) {
        return Ok(number);
    }
    if names.len() == most {
        return Err(place.message_error(format!("a program has at most {most} {what}")));
    }
    names.push(name.to_owned());
    Ok(names.len() - 1)
}
