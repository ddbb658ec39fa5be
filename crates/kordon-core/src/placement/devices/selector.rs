//! Selectors of devices: CEL expressions over a device's driver, attributes and capacity, with the functions that the
//! API server adds to CEL (`k8s.io/dynamic-resource-allocation/cel`).

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
    sync::{Arc, LazyLock},
};

use cel::{
    Context, Env, ExecutionError, Program, Value,
    common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue},
    extensions,
    extractors::This,
    objects::{Key, Opaque},
    parser::{Macro, MacroExprHelper, ParseError},
};

use crate::cluster::{
    Name,
    device::{Device, DeviceAttribute},
    quantity,
};

/// A compiled selector.
pub(super) struct DeviceSelector {
    program: Program,
    /// String literals in the CEL expression. If a literal names a domain in which the device has no values, the domain
    /// is an empty map.
    texts: BTreeSet<String>,
    /// Whether the expression reads only fields of `device` that kordon knows.
    has_known_fields: bool,
    expression: Name,
}

/// Why a selector has no result for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SelectorError {
    /// The expression reads a value that the device does not have, so it fails in the scheduler too. The text says why.
    Fails(String),
    /// It is not known whether the selector holds, for the reason in the text.
    Unknown(String),
}

/// The fields of `device`.
const FIELDS: [&str; 4] = ["driver", "allowMultipleAllocations", "attributes", "capacity"];

/// The standard library of CEL with the macros that device selectors use.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(true);
    env.add_extension(extensions::strings).expect("the standard library declares none of them");
    env.add_macro(Macro::receiver("bind", 3, bind)).expect("the standard library has no such macro");
    Arc::new(env)
});

impl DeviceSelector {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The text is not an expression. The error is the reason in words.
    pub fn compile(expression: &Name) -> Result<Self, String> {
        let bad = |why: &str| format!("the selector {expression} cannot be read: {why}");
        if expression.is_empty() {
            return Err("a selector is not a CEL expression".into());
        }
        let program = ENV.compile(expression).map_err(|errors| bad(first_line(&errors.to_string())))?;
        let (mut texts, mut fields) = (BTreeSet::new(), BTreeSet::new());
        collect(program.expression(), &mut texts, &mut fields);
        let has_known_fields = fields.iter().all(|field| FIELDS.contains(&field.as_str()));
        Ok(Self { program, texts, has_known_fields, expression: expression.clone() })
    }

    /// Whether the selector holds for a device.
    ///
    /// # Errors
    /// The expression cannot be evaluated: it fails, or uses something that kordon does not know.
    pub fn selects(&self, driver: &Name, device: &Device) -> Result<bool, SelectorError> {
        let bad = |why: &str| {
            let text = format!("the selector {} cannot be evaluated: {why}", self.expression);
            SelectorError::Unknown(text)
        };
        let mut context = Context::with_env(ENV.clone());
        add_functions(&mut context).map_err(|error| bad(&error))?;
        context.add_variable_from_value("device", self.variable(driver, device));
        match self.program.execute(&context) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err(bad("it is neither true nor false")),
            Err(ExecutionError::NoSuchKey(key)) if self.has_known_fields && is_known(device) => {
                let text =
                    format!("the selector {} fails: device {} has no {key}", self.expression, device.name);
                Err(SelectorError::Fails(text))
            }
            Err(error) => Err(bad(first_line(&error.to_string()))),
        }
    }

    fn variable(&self, driver: &Name, device: &Device) -> Value {
        let attributes = device.attributes.iter().filter_map(|(name, value)| {
            let value = match value {
                DeviceAttribute::Int(int) => Value::Int(*int),
                DeviceAttribute::Bool(flag) => Value::Bool(*flag),
                DeviceAttribute::Text(text) => text.as_str().into(),
                DeviceAttribute::Version(text) => opaque(Version::parse(text)?),
                DeviceAttribute::Unknown => return None,
            };
            Some((name, value))
        });
        let capacity = device
            .capacity
            .iter()
            .filter_map(|(name, amount)| Some((name, opaque(Quantity(quantity::parse_nano(amount)?)))));
        let values: [Value; 4] = [
            driver.as_str().into(),
            device.is_shareable.into(),
            self.domains(driver, attributes),
            self.domains(driver, capacity),
        ];
        FIELDS.into_iter().zip(values).collect::<HashMap<&str, Value>>().into()
    }

    /// Groups values by domain and name. A name without a domain belongs to the domain of the driver.
    fn domains<'a>(&self, driver: &Name, values: impl Iterator<Item = (&'a Name, Value)>) -> Value {
        let mut domains: HashMap<String, HashMap<String, Value>> =
            self.texts.iter().map(|text| (text.clone(), HashMap::new())).collect();
        for (name, value) in values {
            let (domain, id) = name.split_once('/').unwrap_or((driver, name));
            domains.entry(domain.into()).or_default().insert(id.into(), value);
        }
        let domains: HashMap<Key, Value> =
            domains.into_iter().map(|(domain, values)| (domain.into(), values.into())).collect();
        domains.into()
    }
}

/// Whether kordon knows the values of all attributes and capacities of a device.
fn is_known(device: &Device) -> bool {
    let is_known = |value: &DeviceAttribute| match value {
        DeviceAttribute::Int(_) | DeviceAttribute::Bool(_) | DeviceAttribute::Text(_) => true,
        DeviceAttribute::Version(text) => Version::parse(text).is_some(),
        DeviceAttribute::Unknown => false,
    };
    device.attributes.iter().all(|(_, value)| is_known(value))
        && device.capacity.iter().all(|(_, amount)| quantity::parse_nano(amount).is_some())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Collects all string literals of an expression, and the fields of `device` that it reads.
fn collect(expression: &IdedExpr, texts: &mut BTreeSet<String>, fields: &mut BTreeSet<String>) {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => {
            texts.insert(text.inner().to_owned());
        }
        Expr::Call(call) => {
            call.target.iter().for_each(|target| collect(target, texts, fields));
            call.args.iter().for_each(|arg| collect(arg, texts, fields));
        }
        Expr::Comprehension(comprehension) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } =
                &**comprehension;
            for part in [iter_range, accu_init, loop_cond, loop_step, result] {
                collect(part, texts, fields);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|element| collect(element, texts, fields)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    collect(&entry.key, texts, fields);
                    collect(&entry.value, texts, fields);
                }
            }
        }
        Expr::Select(select) => {
            if matches!(&select.operand.expr, Expr::Ident(name) if name == "device") {
                fields.insert(select.field.clone());
            }
            collect(&select.operand, texts, fields);
        }
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => {}
    }
}

/// Expands `cel.bind(name, value, expression)` as cel-go's `ext.Bindings()` does.
fn bind(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Result<Option<IdedExpr>, ParseError> {
    let is_cel = matches!(target, Some(IdedExpr { expr: Expr::Ident(name), .. }) if name == "cel");
    let (Some(result), Some(init), Some(name), true) = (args.pop(), args.pop(), args.pop(), is_cel) else {
        return Ok(None);
    };
    let Expr::Ident(name_of) = name.expr else {
        return Err(helper.new_error(name.id, "cel.bind needs the name of a variable"));
    };
    let bound = ComprehensionExpr {
        iter_range: helper.next_expr(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".into(),
        iter_var2: None,
        loop_cond: helper.next_expr(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: helper.next_expr(Expr::Ident(name_of.clone())),
        accu_var: name_of,
        accu_init: init,
        result,
    };
    Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(bound)))))
}

/// A Kubernetes quantity, in billionths of its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Quantity(i128);

/// A semantic version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    numbers: [u64; 3],
    /// The parts of the pre-release in a version such as `1.2.3-rc.1`; empty for a release. A release is newer than all
    /// of its pre-releases.
    pre: Vec<String>,
}

impl Opaque for Quantity {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.Quantity"
    }
}

impl Opaque for Version {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.Semver"
    }
}

fn opaque(value: impl Opaque) -> Value {
    Value::Opaque(Arc::new(value))
}

impl Version {
    /// Parses a version (semver.org, 2.0.0); none if the text is not one.
    fn parse(text: &str) -> Option<Self> {
        let (text, _build) = text.split_once('+').unwrap_or((text, ""));
        let (numbers, pre) = match text.split_once('-') {
            Some((numbers, pre)) => (numbers, pre.split('.').map(str::to_owned).collect()),
            None => (text, Vec::new()),
        };
        let number = |part: &str| {
            let is_plain = part.len() == 1 || !part.starts_with('0');
            (is_plain && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse().ok())?
        };
        let numbers: Vec<u64> = numbers.split('.').map(number).collect::<Option<_>>()?;
        Some(Self { numbers: numbers.try_into().ok()?, pre })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let part = |one: &String, other: &String| match (one.parse::<u64>(), other.parse::<u64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
        };
        let pre = || match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let parts = self.pre.iter().zip(&other.pre).map(|(one, other)| part(one, other));
                let first = parts.into_iter().find(|order| order.is_ne());
                first.unwrap_or_else(|| self.pre.len().cmp(&other.pre.len()))
            }
        };
        self.numbers.cmp(&other.numbers).then_with(pre)
    }
}

fn fails(function: &str) -> ExecutionError {
    ExecutionError::function_error(function, "not of these values")
}

/// Compares two quantities or two versions.
fn order(function: &'static str, one: &Value, other: &Value) -> Result<Ordering, ExecutionError> {
    let (Value::Opaque(one), Value::Opaque(other)) = (one, other) else { return Err(fails(function)) };
    if let (Some(one), Some(other)) = (one.downcast_ref::<Quantity>(), other.downcast_ref::<Quantity>()) {
        return Ok(one.cmp(other));
    }
    match (one.downcast_ref::<Version>(), other.downcast_ref::<Version>()) {
        (Some(one), Some(other)) => Ok(one.cmp(other)),
        _ => Err(fails(function)),
    }
}

fn as_quantity(function: &'static str, value: &Value) -> Result<Quantity, ExecutionError> {
    let Value::Opaque(value) = value else { return Err(fails(function)) };
    value.downcast_ref::<Quantity>().copied().ok_or_else(|| fails(function))
}

/// Returns the amount of a quantity or a whole number, in billionths.
fn amount(function: &'static str, value: &Value) -> Result<i128, ExecutionError> {
    match value {
        Value::Int(int) => Ok(i128::from(*int) * BILLION),
        other => as_quantity(function, other).map(|quantity| quantity.0),
    }
}

const BILLION: i128 = 1_000_000_000;

fn version_part(value: &Value, place: usize) -> Result<Value, ExecutionError> {
    let Value::Opaque(value) = value else { return Err(fails("major, minor or patch")) };
    let version = value.downcast_ref::<Version>().ok_or_else(|| fails("major, minor or patch"))?;
    Ok(Value::Int(i64::try_from(version.numbers[place]).unwrap_or(i64::MAX)))
}

/// Adds the functions of Kubernetes for quantities and versions.
fn add_functions(context: &mut Context<'_, '_>) -> Result<(), String> {
    let mut add = || {
        context.add_function("quantity", |text: Arc<String>| match quantity::parse_nano(&text) {
            Some(nano) => Ok(opaque(Quantity(nano))),
            None => Err(fails("quantity")),
        })?;
        context.add_function("isQuantity", |text: Arc<String>| quantity::parse_nano(&text).is_some())?;
        context.add_function("semver", |text: Arc<String>| match Version::parse(&text) {
            Some(version) => Ok(opaque(version)),
            None => Err(fails("semver")),
        })?;
        context.add_function("isSemver", |text: Arc<String>| Version::parse(&text).is_some())?;
        context.add_function("compareTo", |This(one): This<Value>, other: Value| {
            order("compareTo", &one, &other).map(|order| Value::Int(order as i64))
        })?;
        context.add_function("isGreaterThan", |This(one): This<Value>, other: Value| {
            order("isGreaterThan", &one, &other).map(|order| Value::Bool(order.is_gt()))
        })?;
        context.add_function("isLessThan", |This(one): This<Value>, other: Value| {
            order("isLessThan", &one, &other).map(|order| Value::Bool(order.is_lt()))
        })?;
        context.add_function("sign", |This(one): This<Value>| {
            as_quantity("sign", &one).map(|quantity| Value::Int(quantity.0.signum() as i64))
        })?;
        context.add_function("isInteger", |This(one): This<Value>| {
            as_quantity("isInteger", &one).map(|quantity| Value::Bool(quantity.0 % BILLION == 0))
        })?;
        context.add_function("asInteger", |This(one): This<Value>| {
            let quantity = as_quantity("asInteger", &one)?.0;
            let whole = (quantity % BILLION == 0).then(|| i64::try_from(quantity / BILLION).ok());
            whole.flatten().map(Value::Int).ok_or_else(|| fails("asInteger"))
        })?;
        context.add_function("add", |This(one): This<Value>, other: Value| {
            let sum = as_quantity("add", &one)?.0.saturating_add(amount("add", &other)?);
            Ok::<_, ExecutionError>(opaque(Quantity(sum)))
        })?;
        context.add_function("sub", |This(one): This<Value>, other: Value| {
            let left = as_quantity("sub", &one)?.0.saturating_sub(amount("sub", &other)?);
            Ok::<_, ExecutionError>(opaque(Quantity(left)))
        })?;
        context.add_function("major", |This(one): This<Value>| version_part(&one, 0))?;
        context.add_function("minor", |This(one): This<Value>| version_part(&one, 1))?;
        context.add_function("patch", |This(one): This<Value>| version_part(&one, 2))
    };
    add().map_err(|error: cel::DeclarationError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        Device {
            name: "gpu-0".into(),
            attributes: [
                ("model".into(), DeviceAttribute::Text("a100".into())),
                ("cores".into(), DeviceAttribute::Int(8)),
                ("numa".into(), DeviceAttribute::Bool(true)),
                ("driverVersion".into(), DeviceAttribute::Version("1.10.0-rc.2".into())),
                ("resource.kubernetes.io/pcieRoot".into(), DeviceAttribute::Text("pci0".into())),
            ]
            .into(),
            capacity: [("memory".into(), "40Gi".into())].into(),
            ..Device::default()
        }
    }

    fn selects(expression: &str) -> Result<bool, SelectorError> {
        let selector = DeviceSelector::compile(&expression.into()).map_err(SelectorError::Unknown)?;
        selector.selects(&"gpu.example.com".into(), &device())
    }

    #[test]
    fn expressions_over_driver_attributes_and_capacity_are_evaluated() {
        let of = "device.attributes['gpu.example.com']";
        for (expression, expected) in [
            ("device.driver == 'gpu.example.com'".to_owned(), true),
            (format!("{of}.model == 'a100' && {of}.cores > 7 && {of}.numa"), true),
            (format!("{of}.model in ['h100', 'h200']"), false),
            (format!("{of}.model.lowerAscii().startsWith('a1')"), true),
            (format!("{of}.model.matches('^a[0-9]+$')"), true),
            ("device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0'".into(), true),
            (format!("has({of}.nvlink)"), false),
            ("has(device.attributes['other.example.com'].model)".into(), false),
            (format!("{of}.?model.orValue('none') == 'a100'"), true),
            (format!("cel.bind(gpu, {of}, gpu.cores == 8)"), true),
            (format!("{of}.driverVersion.isLessThan(semver('1.10.0'))"), true),
            (format!("{of}.driverVersion.compareTo(semver('1.9.9')) > 0"), true),
            (format!("{of}.driverVersion.minor() == 10"), true),
            ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) == 0".into(), true),
            ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40G'))".into(), true),
            (
                "device.capacity['gpu.example.com'].memory.sub(quantity('1')).isLessThan(quantity('40Gi'))"
                    .into(),
                true,
            ),
            ("device.allowMultipleAllocations".into(), false),
        ] {
            assert_eq!(selects(&expression), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn what_cannot_be_evaluated_says_so() {
        for expression in [
            "",
            "device.driver ==",
            "device.driver",
            "device.attributes['gpu.example.com'].nvlink == 2",
            "device.attributes['other.example.com'].model == 'a100'",
            "device.driver.unheardOf()",
            "device.capacity['gpu.example.com'].memory.isGreaterThan(semver('1.0.0'))",
            "quantity('lots').sign() == 1",
        ] {
            assert!(selects(expression).is_err(), "{expression}: {:?}", selects(expression));
        }
    }

    /// Kubernetes 1.37 `structured/internal/stable/allocator_stable.go`, `selectorsMatch`: an error ends the allocation.
    #[test]
    fn a_value_that_the_device_does_not_have_makes_the_selector_fail() {
        for expression in [
            "device.attributes['gpu.example.com'].nvlink == 2",
            "device.attributes['other.example.com'].model == 'a100'",
        ] {
            assert!(matches!(selects(expression), Err(SelectorError::Fails(_))), "{expression}");
        }
        let newer = "device.newField == 3";
        assert!(matches!(selects(newer), Err(SelectorError::Unknown(_))), "{:?}", selects(newer));
    }

    #[test]
    fn versions_are_ordered_as_semver_does() {
        let versions = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.2.0",
            "1.10.0",
        ];
        let parsed: Vec<Version> =
            versions.iter().map(|text| Version::parse(text).expect("a version")).collect();
        assert!(parsed.is_sorted_by(|one, next| one < next));
        for text in ["1", "1.0", "01.0.0", "1.0.x", ""] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
