// SPDX-License-Identifier: Apache-2.0
//! Maps that are not changed after they were made.
use super::{container_handle, short_type_name};
use crate::any::{Any, AnyView, TryFromTemp};
use crate::derive::Object as DeriveObject;
use crate::error::{Error, Result};
use crate::function::Function;
use crate::object::{ref_any, Object, ObjectArc, ObjectRef, ObjectRefCore, TypeIndex};
use crate::type_traits::{AnyCompatible, ContainerElement};
use std::ffi::c_void;
use std::marker::PhantomData;
use tvm_ffi_sys::*;

/// The object behind a [`Map`]; only the runtime makes them.
///
/// ```
/// use tvm_ffi::Map;
/// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
/// assert_eq!(tvm_ffi::ObjectRefCore::as_node::<tvm_ffi::collections::map::MapObj>(&map).unwrap().size, 2);
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.Map"]
#[type_index(TypeIndex::kTVMFFIMap)]
pub struct MapObj {
    /// Header.
    pub object: Object,
    /// The table.
    pub data: *mut c_void,
    /// Number of entries.
    pub size: u64,
    /// Size of the table.
    pub slots: u64,
}

/// A map from keys to values of one type each.
///
/// ```
/// use tvm_ffi::{Map, String};
/// let map: Map<String, i64> = [(String::from("a"), 1)].into_iter().collect();
/// assert_eq!(map.get(&String::from("a")).unwrap(), Some(1));
/// assert_eq!(map.get(&String::from("b")).unwrap(), None);
/// ```
#[repr(C)]
pub struct Map<K, V> {
    data: ObjectArc<MapObj>,
    _phantom: PhantomData<(K, V)>,
}

container_handle!(Map<K, V>, MapObj, [K, V], [K: ContainerElement, V: ContainerElement], "Map<{}, {}>");

impl<K, V> std::ops::Deref for Map<K, V> {
    type Target = MapObj;
    fn deref(&self) -> &MapObj {
        &self.data
    }
}

impl<K: ContainerElement, V: ContainerElement> Map<K, V> {
    /// An empty map.
    ///
    /// ```
    /// use tvm_ffi::Map;
    /// assert_eq!(Map::<i64, i64>::new().len(), 0);
    /// ```
    pub fn new() -> Self {
        Self::make(&[])
    }

    fn make(views: &[AnyView]) -> Self {
        let made = crate::cached_global_func!("ffi.Map").call_packed(views);
        match made.and_then(ObjectRef::try_from) {
            // SAFETY: the function makes maps; the entries are Ks and Vs.
            Ok(object) => unsafe {
                let raw = ObjectArc::into_raw(ObjectRefCore::into_data(object));
                Self::from_data(ObjectArc::from_raw(raw as *const MapObj))
            },
            Err(error) => panic!("cannot make a map: {error}"),
        }
    }

    /// Number of entries.
    ///
    /// ```
    /// use tvm_ffi::Map;
    /// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
    /// assert_eq!(map.len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.data.size as usize
    }

    /// Whether there is none.
    ///
    /// ```
    /// use tvm_ffi::Map;
    /// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
    /// assert!(!map.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn with_key(&self, func: &Function, key: &K) -> Result<Any> {
        let mut map = TVMFFIAny::new();
        // SAFETY: the views are used while self and key are alive.
        unsafe {
            ref_any::copy_to_any_view(self, &mut map);
            func.call_packed(&[AnyView::from_raw(map), AnyView::from_raw(key.element_view())])
        }
    }

    fn has(&self, key: &K) -> Result<bool> {
        let count: i64 =
            self.with_key(crate::cached_global_func!("ffi.MapCount"), key)?.try_into()?;
        if count == 0 {
            self.check_key_type();
        }
        Ok(count != 0)
    }

    /// A missed lookup with the wrong type of key is a mistake; debug builds say so.
    fn check_key_type(&self) {
        if cfg!(debug_assertions) && !self.is_empty() {
            let stored = EntryIter::new(self.clone_ref()).next().map(|(key, _)| key);
            // SAFETY: the value is alive.
            if stored.is_some_and(|key| unsafe { !K::element_strict(key.raw()) }) {
                panic!(
                    "Map lookup: key type `{}` does not match the map's stored key type",
                    std::any::type_name::<K>()
                );
            }
        }
    }

    fn clone_ref(&self) -> ObjectRef {
        // SAFETY: every object starts with an Object.
        unsafe {
            let raw = ObjectArc::into_raw(self.data.clone());
            ObjectRef::from_data(ObjectArc::from_raw(raw as *const Object))
        }
    }

    /// The value of a key.
    ///
    /// ```
    /// use tvm_ffi::Map;
    /// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
    /// assert_eq!(map.get(&2).unwrap(), Some(false));
    /// assert_eq!(map.get(&3).unwrap(), None);
    /// ```
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        if !self.has(key)? {
            return Ok(None);
        }
        let value = self.with_key(crate::cached_global_func!("ffi.MapGetItem"), key)?;
        // SAFETY: the value is alive.
        match unsafe { V::element_read(value.raw()) } {
            Ok(value) => Ok(Some(value)),
            Err(()) => {
                let message = format!(
                    "Cannot convert from type `{}` to `{}`",
                    crate::type_traits::type_key_of(value.type_index()),
                    V::element_type_str()
                );
                Err(Error::new(crate::error::TYPE_ERROR, &message, ""))
            }
        }
    }

    /// Whether there is an entry for a key.
    ///
    /// ```
    /// use tvm_ffi::Map;
    /// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
    /// assert!(map.contains_key(&1));
    /// ```
    pub fn contains_key(&self, key: &K) -> bool {
        self.has(key).unwrap_or_else(|error| panic!("cannot look up a key: {error}"))
    }

    /// The entries.
    ///
    /// ```
    /// use tvm_ffi::Map;
    /// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
    /// assert_eq!(map.iter().filter(|(_, value)| *value).count(), 1);
    /// ```
    pub fn iter(&self) -> MapItems<K, V> {
        MapIter {
            entries: EntryIter::new(self.clone_ref()),
            convert: |key, value| (read::<K>(key, "key"), read::<V>(value, "value")),
        }
    }

    /// The keys.
    ///
    /// ```
    /// use tvm_ffi::Map;
    /// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
    /// assert_eq!(map.keys().sum::<i64>(), 3);
    /// ```
    pub fn keys(&self) -> MapKeys<K> {
        MapIter {
            entries: EntryIter::new(self.clone_ref()),
            convert: |key, _| read::<K>(key, "key"),
        }
    }

    /// The values.
    ///
    /// ```
    /// use tvm_ffi::Map;
    /// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
    /// assert!(map.values().any(|value| value));
    /// ```
    pub fn values(&self) -> MapValues<V> {
        MapIter {
            entries: EntryIter::new(self.clone_ref()),
            convert: |_, value| read::<V>(value, "value"),
        }
    }

    unsafe fn check_strict(data: &TVMFFIAny) -> bool {
        data.type_index == TypeIndex::kTVMFFIMap as i32
            && EntryIter::try_new(ref_any::copy_from(data)).is_ok_and(|mut entries| loop {
                match entries.try_next() {
                    Ok(Some((key, value))) => {
                        if !K::element_strict(key.raw()) || !V::element_strict(value.raw()) {
                            return false;
                        }
                    }
                    Ok(None) => return true,
                    Err(_) => return false,
                }
            })
    }

    unsafe fn convert(data: &TVMFFIAny) -> Result<Self, ()> {
        if data.type_index != TypeIndex::kTVMFFIMap as i32 {
            return Err(());
        }
        let mut entries = EntryIter::try_new(ref_any::copy_from(data)).map_err(|_| ())?;
        let mut items = Vec::new();
        while let Some((key, value)) = entries.try_next().map_err(|_| ())? {
            items.push((K::element_read(key.raw())?, V::element_read(value.raw())?));
        }
        Ok(items.into_iter().collect())
    }
}

fn read<T: ContainerElement>(value: &Any, what: &str) -> T {
    // SAFETY: the value is alive.
    unsafe { T::element_read(value.raw()) }
        .unwrap_or_else(|()| panic!("map iterator: {what} does not match the map's {what} type"))
}

impl<K: ContainerElement, V: ContainerElement> Default for Map<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: ContainerElement, V: ContainerElement> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Self {
        let mut items = Vec::new();
        for (key, value) in iter {
            items.push(key.element_into_any());
            items.push(value.element_into_any());
        }
        let views: Vec<AnyView> = items.iter().map(AnyView::from).collect();
        Self::make(&views)
    }
}

impl<K, V> std::fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (key, value) = (short_type_name::<K>(), short_type_name::<V>());
        write!(f, "Map<{key}, {value}>[{}]", self.data.size)
    }
}

/// The entries of a map as they are; keeps the map alive.
struct EntryIter {
    _map: ObjectRef,
    cursor: Option<Function>,
    left: usize,
}

impl EntryIter {
    fn try_new(map: ObjectRef) -> Result<Self> {
        // SAFETY: callers pass maps.
        let left = unsafe {
            (*(ObjectArc::as_raw(ObjectRefCore::data(&map)) as *const MapObj)).size as usize
        };
        let cursor = if left == 0 {
            None
        } else {
            let views = [AnyView::from(&map)];
            let made =
                crate::cached_global_func!("ffi.MapForwardIterFunctor").call_packed(&views)?;
            Some(made.try_into()?)
        };
        Ok(Self { _map: map, cursor, left })
    }

    fn new(map: ObjectRef) -> Self {
        Self::try_new(map).unwrap_or_else(|error| panic!("cannot iterate over a map: {error}"))
    }

    fn try_next(&mut self) -> Result<Option<(Any, Any)>> {
        let Some(cursor) = self.cursor.as_ref().filter(|_| self.left > 0) else {
            return Ok(None);
        };
        let key = cursor.call_tuple((0i64,))?;
        let value = cursor.call_tuple((1i64,))?;
        self.left -= 1;
        if self.left > 0 {
            cursor.call_tuple((2i64,))?;
        }
        Ok(Some((key, value)))
    }

    fn next(&mut self) -> Option<(Any, Any)> {
        self.try_next().unwrap_or_else(|error| panic!("cannot iterate over a map: {error}"))
    }
}

/// What a map yields.
///
/// ```
/// use tvm_ffi::Map;
/// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
/// assert_eq!(map.keys().len(), 2);
/// ```
pub struct MapIter<T> {
    entries: EntryIter,
    convert: fn(&Any, &Any) -> T,
}
/// The entries of a [`Map`].
///
/// ```
/// use tvm_ffi::Map;
/// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
/// let items: tvm_ffi::collections::map::MapItems<i64, bool> = map.iter();
/// assert_eq!(items.len(), 2);
/// ```
pub type MapItems<K, V> = MapIter<(K, V)>;
/// The keys of a [`Map`].
///
/// ```
/// use tvm_ffi::Map;
/// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
/// let keys: tvm_ffi::collections::map::MapKeys<i64> = map.keys();
/// assert_eq!(keys.len(), 2);
/// ```
pub type MapKeys<K> = MapIter<K>;
/// The values of a [`Map`].
///
/// ```
/// use tvm_ffi::Map;
/// let map: Map<i64, bool> = [(1, true), (2, false)].into_iter().collect();
/// let values: tvm_ffi::collections::map::MapValues<bool> = map.values();
/// assert_eq!(values.len(), 2);
/// ```
pub type MapValues<V> = MapIter<V>;

impl<T> Iterator for MapIter<T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        let (key, value) = self.entries.next()?;
        Some((self.convert)(&key, &value))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.entries.left, Some(self.entries.left))
    }
}
impl<T> ExactSizeIterator for MapIter<T> {}

impl<K: ContainerElement, V: ContainerElement> IntoIterator for &Map<K, V> {
    type Item = (K, V);
    type IntoIter = MapItems<K, V>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
