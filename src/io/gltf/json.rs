//! Typed reads of untrusted JSON: every fault names the place where it stands.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Largest whole number that f64 holds together with all below it.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A member that is there and is not `null`.
pub(super) fn member<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|v| !v.is_null())
}

/// A whole number from 0. `3.0` is one too: some writers put it so.
pub(super) fn whole(value: &Value, key: &str, place: &str) -> Result<usize> {
    let number = value
        .as_u64()
        .or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && (0.0..=EXACT).contains(f)).map(|f| f as u64));
    number
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(|| Error::format(place, format!("{key} is {}, which is not a whole number from 0", brief(value))))
}

/// A member that is a whole number from 0, where it is there.
pub(super) fn index(object: &Value, key: &str, place: &str) -> Result<Option<usize>> {
    member(object, key).map(|v| whole(v, key, place)).transpose()
}

/// A member that must be a whole number from 0.
pub(super) fn need_index(object: &Value, key: &str, place: &str) -> Result<usize> {
    index(object, key, place)?.ok_or_else(|| Error::format(place, format!("{key} is missing")))
}

/// A list, empty where it is missing.
pub(super) fn list<'a>(object: &'a Value, key: &str, place: &str) -> Result<&'a [Value]> {
    match member(object, key) {
        None => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(Error::format(place, format!("{key} is {}, which is not a list", brief(other)))),
    }
}

/// A list of whole numbers, each below `limit`, empty where it is missing.
pub(super) fn indices(object: &Value, key: &str, limit: usize, place: &str) -> Result<Vec<usize>> {
    let items = list(object, key, place)?;
    items.iter().map(|v| below(whole(v, key, place)?, limit, key, place)).collect()
}

/// The number itself, which must be below the number of entries there are.
pub(super) fn below(number: usize, limit: usize, key: &str, place: &str) -> Result<usize> {
    if number < limit {
        return Ok(number);
    }
    Err(Error::format(place, format!("{key} names number {number}, but there are only {limit} (0-based)")))
}

/// A list of exactly `N` numbers, where it is there.
pub(super) fn numbers<const N: usize>(object: &Value, key: &str, place: &str) -> Result<Option<[f64; N]>> {
    if member(object, key).is_none() {
        return Ok(None);
    }
    let items = list(object, key, place)?;
    if items.len() != N {
        return Err(Error::format(place, format!("{key} has {} numbers where {N} belong", items.len())));
    }
    let mut out = [0.0; N];
    for (slot, item) in out.iter_mut().zip(items) {
        *slot = item
            .as_f64()
            .filter(|f| f.is_finite())
            .ok_or_else(|| Error::format(place, format!("{key} has {} where a finite number belongs", brief(item))))?;
    }
    Ok(Some(out))
}

/// A text, where it is there.
pub(super) fn text<'a>(object: &'a Value, key: &str, place: &str) -> Result<Option<&'a str>> {
    match member(object, key) {
        None => Ok(None),
        Some(Value::String(s)) => Ok(Some(s)),
        Some(other) => Err(Error::format(place, format!("{key} is {}, which is not a text", brief(other)))),
    }
}

/// A member that is an object, made where it is missing.
pub(super) fn object_mut<'a>(value: &'a mut Value, key: &str, place: &str) -> Result<&'a mut Map<String, Value>> {
    let holder = value.as_object_mut().ok_or_else(|| Error::format(place, "not an object"))?;
    let slot = holder.entry(key).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().ok_or_else(|| Error::format(place, format!("{key} is not an object")))
}

/// A member that is a list, made where it is missing.
pub(super) fn list_mut<'a>(value: &'a mut Value, key: &str, place: &str) -> Result<&'a mut Vec<Value>> {
    let holder = value.as_object_mut().ok_or_else(|| Error::format(place, "not an object"))?;
    let slot = holder.entry(key).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Array(Vec::new());
    }
    slot.as_array_mut().ok_or_else(|| Error::format(place, format!("{key} is not a list")))
}

/// The value as it stands in the file, short enough for a message.
pub(super) fn brief(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        Value::String(s) if s.chars().count() > 40 => format!("\"{}...\"", s.chars().take(40).collect::<String>()),
        other => other.to_string(),
    }
}
