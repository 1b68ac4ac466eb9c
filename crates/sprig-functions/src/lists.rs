//! Slices of any element type: sprig reaches their elements by reflection, and returns `[]interface {}` mostly.
//!
//! Each function has a twin with `must` before its name. In Go the first panics where the second returns an error, which
//! the engine words alike.

mod build;
mod items;
mod pick;
mod search;

use go_template::Functions;

pub(crate) use items::items;

pub(crate) fn register(functions: &mut Functions) {
    build::register(functions);
    pick::register(functions);
    search::register(functions);
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    fn check(template: &str, expected: &str) {
        crate::testing::check(template, &Value::Nil, expected);
    }

    #[test]
    fn parts_of_slices_are_new_slices() {
        check(
            "{{ first (list 1 2) }}{{ last (list 1 2) }}{{ first (list) }}",
            "12<no value>",
        );
        check(
            "{{ rest (list) | toJson }}{{ rest (list 1 2) }}{{ initial (until 3) }}",
            "null[2][0 1]",
        );
        check(
            r#"{{ slice (splitList "," "a,b,c") 1 2 | typeOf }}{{ slice (list 1 2 3) 1 }}"#,
            "[]string[2 3]",
        );
        check(
            "{{ slice (list 1 2) 2 1 }}",
            "error calling slice: reflect.Value.Slice: slice index out of bounds",
        );
        check(
            r#"{{ first "a" }}"#,
            "error calling first: Cannot find first on type string",
        );
        check(
            "{{ first nil }}",
            "error calling first: runtime error: invalid memory address or nil pointer dereference",
        );
    }

    #[test]
    fn slices_are_put_together_and_cut() {
        check(
            "{{ append (until 2) 9 }}{{ prepend (list 1) nil }}{{ reverse (until 3) }}",
            "[0 1 9][<nil> 1][2 1 0]",
        );
        check(
            "{{ concat | toJson }}{{ concat (list 1) (until 2) }}",
            "null[1 0 1]",
        );
        check(
            r#"{{ concat "a" }}"#,
            "error calling concat: Cannot concat type string as list",
        );
        check(
            "{{ chunk 2 (until 5) }}{{ chunk -3 (list 1) }}{{ chunk -2 (until 2) }}",
            "[[0 1] [2 3] [4]][[1]][]",
        );
        check(
            "{{ chunk 0 (list 1) }}",
            "error calling chunk: runtime error: makeslice: len out of range",
        );
    }

    #[test]
    fn equality_is_that_of_types_and_values() {
        check(
            "{{ has 1 (list 1.0 2) }}{{ has (list) (list (list)) }}{{ has 1 nil }}",
            "falsetruefalse",
        );
        check(
            r#"{{ uniq (list "a" 1 "a" 1.0 1 nil nil) }}{{ without (list 1 "a" 2) "a" 2 }}"#,
            "[a 1 1 <nil>][1]",
        );
    }

    #[test]
    fn strings_are_sorted_in_place() {
        check(
            r#"{{ $l := splitList "," "b,a" }}{{ sortAlpha $l }}{{ $l }}"#,
            "[a b][a b]",
        );
        check(
            r#"{{ $l := list "b" 1 nil }}{{ sortAlpha $l }}{{ $l }}{{ sortAlpha 5 }}"#,
            "[1 b][b 1 <nil>][5]",
        );
    }
}
