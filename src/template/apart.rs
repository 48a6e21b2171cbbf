//! Carries out the orders of `guard`, in a process of its own.

use std::sync::Arc;

use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::guard::{CLOCK, LOOKUP, OrderForm, OrderQuestionText, OrderResult, RenderOrder, RenderSource};
use super::{
    Expression, PieceTemplate, Syntax, Template, TemplateError, Undefined, Value, convert_value, make_clock,
    make_lookup,
};

/// Asks the process that gave the order.
pub type OrderQuestion = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Carries an order out; `ask` reaches the process that gave it.
pub fn serve_order(order: &str, ask: &OrderQuestion) -> String {
    let result = match serde_json::from_str(order) {
        Ok(order) => match render_order(order, ask) {
            Ok(Some(value)) => OrderResult::Value(value),
            Ok(None) => OrderResult::Undefined,
            Err(error) => OrderResult::Error(error),
        },
        Err(error) => OrderResult::Error(TemplateError::new(error.to_string())),
    };
    serde_json::to_string(&result).unwrap_or_default()
}

fn render_order(order: RenderOrder<RenderSource>, ask: &OrderQuestion) -> Result<Option<Json>, TemplateError> {
    let RenderSource { form, syntax, name, source, lenient } = order.source;
    let context = unpack_value(order.context, ask);
    let undefined = if lenient { Undefined::Empty } else { Undefined::Error };
    Ok(match form {
        OrderForm::Text if syntax == Syntax::Jinja => {
            let ask = Arc::clone(ask);
            let load = move |file: &str| ask_for(&ask, &OrderQuestionText::File(file.to_owned()));
            Some(json!(Template::compile_with(&name, &source, undefined, load)?.render(&context)?))
        }
        OrderForm::Text => Some(json!(Template::compile_as(syntax, &name, &source, undefined)?.render(&context)?)),
        OrderForm::Pieces => {
            Some(json!(PieceTemplate::compile(&name, &source, undefined)?.render_marked(&context)?))
        }
        OrderForm::Expression => {
            let value = Expression::compile(&source)?.evaluate(&context)?;
            let is_known = !value.is_undefined();
            let data = |value| serde_json::to_value(&value);
            is_known
                .then(|| data(value))
                .transpose()
                .map_err(|error| TemplateError::new(format!("`{}` is not data: {error}", source.trim())))?
        }
    })
}

fn ask_for(ask: &OrderQuestion, question: &OrderQuestionText) -> Option<String> {
    serde_json::from_str(&ask(&serde_json::to_string(question).ok()?)).ok()?
}

fn unpack_value(packed: Json, ask: &OrderQuestion) -> Value {
    match packed {
        Json::Object(entries) => {
            if let Some(now) = entries.get(CLOCK).and_then(read_moment) {
                return make_clock(now);
            }
            if let Some((at, names)) = entries.get(LOOKUP).and_then(|it| Deserialize::deserialize(it).ok()) {
                let ask = Arc::clone(ask);
                return make_lookup(names, move |name| {
                    ask_for(&ask, &OrderQuestionText::Value(at, name.to_owned()))
                });
            }
            Value::from_pairs(entries.into_iter().map(|(key, item)| (key, unpack_value(item, ask))))
        }
        Json::Array(items) => items.into_iter().map(|item| unpack_value(item, ask)).collect(),
        other => convert_value(&other),
    }
}

/// A moment in its time zone, or with its offset alone where the zone has no name that can be looked up.
fn read_moment(packed: &Json) -> Option<Zoned> {
    let (zoned, moment, offset) = <(String, String, i32)>::deserialize(packed).ok()?;
    let moment: Timestamp = moment.parse().ok()?;
    zoned.parse().ok().or_else(|| Some(moment.to_zoned(TimeZone::fixed(Offset::from_seconds(offset).ok()?))))
}

#[cfg(test)]
mod tests {
    use super::super::guard::pack_value;
    use super::*;

    #[test]
    fn an_order_gives_what_is_given_here() {
        let now = "2026-01-02T03:04:05+02:00[+02:00]".parse().expect("a moment");
        let env = make_lookup(vec!["HOME".to_owned()], |name| (name != "NONE").then(|| format!("<{name}>")));
        let data =
            convert_value(&json!({"xs": [1, 2.5, null, true, "é"], "user": {"name": "Ann", "b": 1, "a": 2}}));
        let utc = make_clock(Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC));
        let clock = ("datetime", make_clock(now));
        let context = super::super::make_object([("env", env), clock, ("utc", utc), ("data", data)]);
        let (mut lookups, undefined) = (Vec::new(), Undefined::Error);
        let packed = pack_value(&context, &mut lookups);
        let ask: OrderQuestion = Arc::new(move |question| {
            match serde_json::from_str(question).expect("one") {
                OrderQuestionText::Value(at, name) => {
                    json!(lookups[at].get_attr(&name).ok().and_then(|it| it.as_str().map(str::to_owned)))
                }
                OrderQuestionText::File(name) => json!((name == "a").then_some("[{{ data.user.name }}]")),
            }
            .to_string()
        });
        for source in [
            "{{ env.HOME }}{{ env.OTHER }}{% for name in env %}{{ name }}{% endfor %}",
            "{{ datetime.now().strftime('%F %T %:z') }}{{ utc.now() }}",
            "{{ data }}{% for x in data.xs %}{{ x }},{% endfor %}{{ data.user|tojson }}{{ data.user.items()|list }}",
            "{% include 'a' %}{% for x in range(2) %}{{ x }}{% endfor %}",
            "{% for x in [1] %}{{ env.NONE }}{{ none_such }}{% endfor %}",
        ] {
            let load = |name: &str| (name == "a").then(|| "[{{ data.user.name }}]".to_owned());
            let here = Template::compile_with("t", source, undefined, load).expect(source).render(&context);
            let (form, syntax, name) = (OrderForm::Text, Syntax::Jinja, "t".to_owned());
            let source = RenderSource { form, syntax, name, source: source.to_owned(), lenient: false };
            let order = serde_json::to_string(&RenderOrder { source, context: packed.clone() }).expect("an order");
            let apart = match serde_json::from_str(&serve_order(&order, &ask)).expect("a result") {
                OrderResult::Value(text) => Ok(text.as_str().expect("a text").to_owned()),
                OrderResult::Undefined => panic!("a text is always defined"),
                OrderResult::Error(error) => Err(error),
            };
            assert_eq!(apart, here);
        }
    }
}
