// SPDX-License-Identifier: Apache-2.0
//! Arrays, lists, maps, shapes, tensors.
use tvm_ffi::*;

#[test]
fn arrays_convert_and_release() {
    let text = String::from("longer than seven");
    let array = Array::new(vec![text.clone(), text.clone()]);
    assert_eq!(Any::from(text.clone()).debug_strong_count(), Some(4));
    assert_eq!(format!("{array:?}"), "Array<String>[2]");
    let any = Any::from(array);
    assert!(Array::<i64>::try_from(any.clone()).is_err());
    let same = Array::<Any>::try_from(any).unwrap();
    assert_eq!(same.len(), 2);
    drop(same);
    assert_eq!(Any::from(text).debug_strong_count(), Some(1));
    let floats = Array::<f64>::try_from(Any::from(Array::new(vec![1i64, 2]))).unwrap();
    assert_eq!(floats.iter().collect::<Vec<_>>(), [1.0, 2.0]);
    assert_eq!(floats.get(2).unwrap_err().kind(), INDEX_ERROR);
    assert_eq!(i64::try_from(Array::new(vec![5i64])[0]).unwrap(), 5);
    assert!(Array::<i64>::default().is_empty());
}

#[test]
fn lists_are_shared() {
    let list: List<i64> = (0..4).collect();
    let any = Any::from(list.clone());
    let same = List::<i64>::try_from(any).unwrap();
    assert!(same.same_as(&list));
    for i in 0..100 {
        same.push(i).unwrap();
    }
    list.remove_range(4, 103).unwrap();
    assert_eq!(list.iter().map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 2, 3, 99]);
    assert_eq!(list.remove(4).unwrap(), 99);
    list.insert_many(2, [7, 8]).unwrap();
    list.reverse();
    assert_eq!(list.iter().rev().map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 7, 8, 2, 3]);
    list.resize(8, 5).unwrap();
    assert_eq!((list.first().unwrap(), list.pop().unwrap(), list.len()), (3, 5, 7));
    let other = list.clone();
    list.extend([1, 2].into_iter().inspect(|_| other.push(9).unwrap())).unwrap();
    assert_eq!(list.iter().map(Result::unwrap).skip(7).collect::<Vec<_>>(), [9, 9, 1, 2]);
    assert_eq!(list.get(11).unwrap_err().message(), "List get index out of bound");
    assert!(list.set(11, 1).is_err() && list.insert(12, 1).is_err());
    list.clear();
    assert!(list.pop().is_err() && list.last().is_err() && list.capacity() > 0);
    let mixed: List<Any> = [Any::from(1i64), Any::from(String::from("x"))].into_iter().collect();
    let ints = unsafe { List::<i64>::from_data(ObjectRefCore::into_data(mixed)) };
    assert_eq!(ints.get(1).unwrap_err().message(), "Failed to cast element at 1 to int");
    assert_eq!(ints.remove(1).unwrap_err().kind(), TYPE_ERROR);
    assert_eq!(ints.len(), 2);
}

#[test]
fn maps_look_up_and_convert() {
    let map: Map<String, i64> =
        [("a", 1), ("b", 2), ("a", 3)].map(|(k, v)| (String::from(k), v)).into_iter().collect();
    assert_eq!(map.len(), 2);
    assert_eq!(map.get(&"a".into()).unwrap(), Some(3));
    assert!(!map.contains_key(&"c".into()));
    assert_eq!(map.values().sum::<i64>(), 5);
    assert_eq!(map.keys().len(), 2);
    assert_eq!(format!("{map:?}"), "Map<String, i64>[2]");
    let any = Any::from(map.clone());
    assert!(Map::<i64, i64>::try_from(any.clone()).is_err());
    let floats = Map::<String, f64>::try_from(any.clone()).unwrap();
    assert!(!floats.same_as(&map) && floats.get(&"b".into()).unwrap() == Some(2.0));
    assert!(Map::<Any, Any>::try_from(any).unwrap().same_as(&map));
    assert!(Map::<i64, i64>::new().iter().next().is_none());
}

#[test]
fn tensors() {
    let tensor = Tensor::from_slice(&[1i32, 2, 3, 4, 5, 6], &[1, 2, 3]).unwrap();
    assert_eq!((tensor.shape(), tensor.strides()), (&[1i64, 2, 3][..], &[6i64, 3, 1][..]));
    tensor.data_as_slice_mut::<i32>().unwrap()[0] = 9;
    assert_eq!(tensor.data_as_slice::<i32>().unwrap()[0], 9);
    let error = tensor.data_as_slice::<f32>().unwrap_err();
    assert_eq!(error.message(), "Data type mismatch \"int32\" vs \"float32\"");
    assert!(
        Tensor::from_slice(&[1i32], &[2]).is_err() && Tensor::from_slice(&[1i32], &[-1]).is_err()
    );
    let empty = Tensor::from_slice::<f32>(&[], &[0, 4]).unwrap();
    assert!(empty.data_as_slice::<f32>().unwrap().is_empty());
    let view = TensorView::try_from(AnyView::from(&tensor)).unwrap();
    assert!(
        view.is_contiguous()
            && view.numel() == 6
            && std::ptr::eq(view.data_ptr(), tensor.data_ptr())
    );
    assert!(AnyView::from(&tensor).try_as::<TensorView>().is_none());
    assert!(AnyView::from(&view).try_as::<TensorView>().is_some());
    assert!(std::panic::catch_unwind(move || Any::from(view)).is_err());
    assert!(Tensor::from_env_alloc(&[1], tensor.dtype(), tensor.device()).is_err());
    assert!(Shape::new().as_slice().is_empty());
}
