//! Values that are computed when a template reads them: the environment, the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Zoned;
use jiff::fmt::strtime;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::Value;

/// An object whose attributes are looked up on demand: an attribute that `find` does not know is undefined.
/// Iterating over it yields `names`; it prints as `{}`.
pub fn make_lookup(names: Vec<String>, find: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Value {
    Value::from_object(Lookup { names, find: Box::new(find) })
}

/// An object with these attributes: the usual way to build a context.
pub fn make_object<K: Into<String>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Value {
    pairs.into_iter().map(|(name, value)| (name.into(), value)).collect::<BTreeMap<String, Value>>().into()
}

/// `over`, with the values of `under` for names that it does not define. Maps in both are layered in the same way.
pub fn layer_values(over: Value, under: Value) -> Value {
    Value::from_object(Layered { over, under })
}

/// `datetime`: its `now()` always returns `now`, so that rendering twice gives the same text. A moment has
/// `strftime(format)`, `isoformat()` and `year`, `month`, `day`, `hour`, `minute`, `second`.
pub fn make_clock(now: Zoned) -> Value {
    Value::from_object(TemplateClock(now))
}

type Find = dyn Fn(&str) -> Option<String> + Send + Sync;

pub(super) struct Lookup {
    pub names: Vec<String>,
    find: Box<Find>,
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}

impl Object for Lookup {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        (self.find)(key.as_str()?).map(Value::from)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.names.iter().map(Value::from).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{}")
    }
}

/// True if it is a map that can be read as a whole, unlike the clock.
fn is_map(value: &Value) -> bool {
    value.kind() == ValueKind::Map && value.try_iter().is_ok()
}

#[derive(Debug)]
struct Layered {
    over: Value,
    under: Value,
}

impl Object for Layered {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let given = |of: &Value| of.get_item(key).ok().filter(|value| !value.is_undefined());
        match (given(&self.over), given(&self.under)) {
            (Some(over), Some(under)) if is_map(&over) && is_map(&under) => Some(layer_values(over, under)),
            (over, under) => over.or(under),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let keys = |of: &Value| of.try_iter().into_iter().flatten().collect::<Vec<_>>();
        let mut all = keys(&self.over);
        let known: BTreeSet<Value> = all.iter().cloned().collect();
        all.extend(keys(&self.under).into_iter().filter(|key| !known.contains(key)));
        Enumerator::Values(all)
    }
}

#[derive(Debug)]
pub(super) struct TemplateClock(pub Zoned);

impl Object for TemplateClock {
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }

    fn call_method(
        self: &Arc<Self>,
        _state: &mut State<'_, '_>,
        method: &str,
        _arguments: &[Value],
    ) -> Result<Value, Error> {
        match method {
            "now" => Ok(Value::from_object(TemplateMoment(self.0.clone()))),
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

#[derive(Debug)]
struct TemplateMoment(Zoned);

impl TemplateMoment {
    fn iso(&self) -> String {
        strtime::format("%Y-%m-%dT%H:%M:%S%:z", &self.0).unwrap_or_default()
    }
}

impl Object for TemplateMoment {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(match key.as_str()? {
            "year" => self.0.year().into(),
            "month" => self.0.month().into(),
            "day" => self.0.day().into(),
            "hour" => self.0.hour().into(),
            "minute" => self.0.minute().into(),
            "second" => self.0.second().into(),
            _ => return None,
        })
    }

    fn call_method(
        self: &Arc<Self>,
        _state: &mut State<'_, '_>,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        match method {
            "isoformat" => Ok(self.iso().into()),
            "strftime" => {
                let format = arguments.first().and_then(Value::as_str).unwrap_or("%Y-%m-%d");
                strtime::format(format, &self.0).map(Value::from).map_err(|_| {
                    Error::new(ErrorKind::InvalidOperation, format!("`{format}` is not a format for a time"))
                })
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iso())
    }
}
