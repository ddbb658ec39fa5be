//! Lists of an operation's tasks (nodes, pods, Deployments), each list with an index type of its own.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Index, IndexMut},
    slice,
};

/// A list of tasks that never shrinks, so indices stay valid.
#[derive(Clone, Debug)]
pub(super) struct Tasks<T>(Vec<T>);

/// Index of a task in its list.
pub(super) struct TaskIndex<T>(usize, PhantomData<fn() -> T>);

impl<T> TaskIndex<T> {
    pub(super) const fn number(self) -> usize {
        self.0
    }
}

impl<T> Tasks<T> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push(&mut self, task: T) -> TaskIndex<T> {
        self.0.push(task);
        TaskIndex(self.0.len() - 1, PhantomData)
    }

    /// The indices of all current tasks.
    pub(super) fn indices(&self) -> impl Iterator<Item = TaskIndex<T>> + use<T> {
        (0..self.0.len()).map(|number| TaskIndex(number, PhantomData))
    }

    pub(super) fn position(&self, is_wanted: impl FnMut(&T) -> bool) -> Option<TaskIndex<T>> {
        self.0.iter().position(is_wanted).map(|number| TaskIndex(number, PhantomData))
    }

    pub(super) fn iter(&self) -> slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

impl<T> Index<TaskIndex<T>> for Tasks<T> {
    type Output = T;

    fn index(&self, index: TaskIndex<T>) -> &T {
        &self.0[index.0]
    }
}

impl<T> IndexMut<TaskIndex<T>> for Tasks<T> {
    fn index_mut(&mut self, index: TaskIndex<T>) -> &mut T {
        &mut self.0[index.0]
    }
}

impl<T> Clone for TaskIndex<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TaskIndex<T> {}

impl<T> PartialEq for TaskIndex<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for TaskIndex<T> {}

impl<T> fmt::Debug for TaskIndex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
