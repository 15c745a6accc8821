// SPDX-License-Identifier: Apache-2.0
//! The benchmark's library for PyO3: objects of a Rust library behind `Arc`, with wrapper classes.
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{mpsc, Arc, RwLock};
use std::time::Duration;

/// The library's own object; Python sees it through `Node`.
struct NodeData {
    value: AtomicI64,
    next: RwLock<Option<Arc<NodeData>>>,
    _children: RwLock<Vec<Arc<NodeData>>>,
}

fn new_data(value: i64) -> Arc<NodeData> {
    Arc::new(NodeData {
        value: AtomicI64::new(value),
        next: RwLock::new(None),
        _children: RwLock::new(Vec::new()),
    })
}

#[pyclass(frozen, subclass)]
struct Node(Arc<NodeData>);

#[pymethods]
impl Node {
    #[new]
    fn new(value: i64) -> Self {
        Node(new_data(value))
    }

    #[getter]
    fn get_value(&self) -> i64 {
        self.0.value.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_value(&self, value: i64) {
        self.0.value.store(value, Ordering::Relaxed)
    }

    #[getter]
    fn get_next(&self) -> Option<Node> {
        self.0.next.read().unwrap().clone().map(Node)
    }

    #[setter]
    fn set_next(&self, node: Option<PyRef<'_, Node>>) {
        *self.0.next.write().unwrap() = node.map(|n| n.0.clone());
    }
}

/// Has methods, which `Node` has not.
#[pyclass(frozen, subclass)]
struct Counter(Arc<AtomicI64>);

#[pymethods]
impl Counter {
    #[new]
    fn new(value: i64) -> Self {
        Counter(Arc::new(AtomicI64::new(value)))
    }

    #[getter]
    fn get_value(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn plus(&self, n: i64) -> i64 {
        self.0.load(Ordering::Relaxed) + n
    }

    #[staticmethod]
    fn twice(n: i64) -> i64 {
        2 * n
    }
}

#[pyclass(frozen, subclass)]
struct Pair(Arc<(i64, i64)>);

#[pymethods]
impl Pair {
    #[new]
    fn new(a: i64, b: i64) -> Self {
        Pair(Arc::new((a, b)))
    }

    #[getter]
    fn get_a(&self) -> i64 {
        self.0 .0
    }

    #[getter]
    fn get_b(&self) -> i64 {
        self.0 .1
    }
}

#[pyfunction]
fn fail(n: i64) -> PyResult<i64> {
    if n != 0 {
        return Err(PyValueError::new_err("as asked"));
    }
    Ok(n)
}

/// Holds any Python object.
#[pyclass(subclass)]
struct Box {
    #[pyo3(get, set)]
    value: Option<Py<PyAny>>,
}

#[pymethods]
impl Box {
    #[new]
    fn new() -> Self {
        Box { value: None }
    }
}

#[pyclass(frozen)]
struct Array(Arc<Vec<Arc<NodeData>>>);

#[pyclass]
struct ArrayIter {
    items: Arc<Vec<Arc<NodeData>>>,
    at: usize,
}

#[pymethods]
impl ArrayIter {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> Option<Node> {
        let item = self.items.get(self.at)?.clone();
        self.at += 1;
        Some(Node(item))
    }
}

#[pymethods]
impl Array {
    #[new]
    fn new(nodes: Vec<PyRef<'_, Node>>) -> Self {
        Array(Arc::new(nodes.iter().map(|n| n.0.clone()).collect()))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__(&self, index: usize) -> PyResult<Node> {
        match self.0.get(index) {
            Some(item) => Ok(Node(item.clone())),
            None => Err(PyIndexError::new_err(index)),
        }
    }

    fn __iter__(&self) -> ArrayIter {
        ArrayIter { items: self.0.clone(), at: 0 }
    }
}

#[pyclass(frozen)]
struct Map(HashMap<String, Arc<NodeData>>);

#[pymethods]
impl Map {
    #[new]
    fn new(nodes: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut map = HashMap::new();
        for (key, node) in nodes.iter() {
            map.insert(key.extract()?, node.extract::<PyRef<'_, Node>>()?.0.clone());
        }
        Ok(Map(map))
    }

    fn __getitem__(&self, key: &str) -> PyResult<Node> {
        match self.0.get(key) {
            Some(item) => Ok(Node(item.clone())),
            None => Err(PyKeyError::new_err(key.to_owned())),
        }
    }
}

#[pyfunction]
fn make_node(value: i64) -> Node {
    Node(new_data(value))
}

#[pyfunction]
fn make_many(n: i64) -> Array {
    Array(Arc::new((0..n).map(new_data).collect()))
}

/// Kept until the process ends.
#[pyfunction]
fn keep(nodes: PyRef<'_, Array>) {
    std::mem::forget(nodes.0.clone());
}

/// Whether another thread can drop what `holder` holds while this one keeps the interpreter locked.
#[pyfunction]
fn drop_on_thread(holder: PyRef<'_, Node>) -> bool {
    let next = holder.0.next.write().unwrap().take();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        drop(next);
        let _ = sender.send(());
    });
    receiver.recv_timeout(Duration::from_millis(300)).is_ok()
}

#[pyfunction]
fn identity(node: PyRef<'_, Node>) -> Node {
    Node(node.0.clone())
}

#[pyfunction]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[pyfunction]
fn add_released(py: Python<'_>, a: i64, b: i64) -> i64 {
    py.detach(|| a + b)
}

#[pyfunction]
fn call<'py>(function: &Bound<'py, PyAny>, node: PyRef<'py, Node>) -> PyResult<Bound<'py, PyAny>> {
    function.call1((Node(node.0.clone()),))
}

#[pyfunction]
fn echo_str(text: String) -> String {
    text
}

#[pymodule]
fn bench_pyo3(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Node>()?;
    m.add_class::<Counter>()?;
    m.add_class::<Pair>()?;
    m.add_class::<Box>()?;
    m.add_class::<Array>()?;
    m.add_class::<Map>()?;
    m.add_function(wrap_pyfunction!(make_node, m)?)?;
    m.add_function(wrap_pyfunction!(make_many, m)?)?;
    m.add_function(wrap_pyfunction!(keep, m)?)?;
    m.add_function(wrap_pyfunction!(drop_on_thread, m)?)?;
    m.add_function(wrap_pyfunction!(identity, m)?)?;
    m.add_function(wrap_pyfunction!(add, m)?)?;
    m.add_function(wrap_pyfunction!(add_released, m)?)?;
    m.add_function(wrap_pyfunction!(call, m)?)?;
    m.add_function(wrap_pyfunction!(echo_str, m)?)?;
    m.add_function(wrap_pyfunction!(fail, m)?)?;
    Ok(())
}
