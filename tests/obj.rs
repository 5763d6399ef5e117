//! OBJ in the dialects that programs write, and the messages for what can not be read.

use glam::DVec3;
use skinbind::io::obj;
use skinbind::model::Mesh;
use skinbind::{Error, Result};

fn parse(text: &str) -> Result<Mesh> {
    obj::parse(text.as_bytes())
}

fn area(mesh: &Mesh) -> f64 {
    mesh.triangles()
        .iter()
        .map(|&t| {
            let [a, b, c] = mesh.corners(t);
            (b - a).cross(c - a).length() / 2.0
        })
        .sum()
}

fn volume(mesh: &Mesh) -> f64 {
    mesh.triangles()
        .iter()
        .map(|&t| {
            let [a, b, c] = mesh.corners(t);
            a.cross(b).dot(c) / 6.0
        })
        .sum()
}

/// An L-shaped prism of area 14 and volume 3 whose first corner does not see the whole outline.
const PRISM: &str = "\
# comment\r\nmtllib does_not_exist.mtl\r\no prism\r\ng side\r\ns off\r\n\
v 2 0 0 0.8 0.2 0.2\r\nv 2 1 0 0.8 0.2 0.2\r\nv 1 1 0 1.0\r\nv\t1\t2 \t0\r\nv 0 2 0 1 1 1 1\r\n  v 0 0 0  # corner\r\n\
v 2 0 1\r\nv 2 1 1\r\nv 1 1 1\r\nv 1 2 1\r\nv 0 2 1\r\nv 0 0 1\r\n\
vt 0 0\r\nvt 1 0\r\nvt 1 1\r\nvn 0 0 1\r\nusemtl red\\\r\n\
f 6/1/1 5/2/1 4/3/1 3/1/1 2/2/1 1/3/1\r\n\
f -6//1 -5//1 -4//1 \\\r\n -3//1 -2//1 -1//1\r\n\
f 1 2 8 7\r\nf 2 3/1 9 8/2\r\nf 3 4 10 9 # side\r\nf 4 5 11 10\r\nf 5/ 6 12 \\  \r\n11\r\nf 6 1 7 12\r\n\
l 1 2\r\np 1\r\nf 1 2\r\ncurv 0 1 1 2\r\nunknown statement\r\n";

#[test]
fn any_dialect_gives_the_same_solid() {
    let only_lf = PRISM.replace("\r\n", "\n");
    let only_cr = PRISM.replace("\r\n", "\r");
    let with_mark = format!("\u{feff}{PRISM}");
    let no_end = PRISM.trim_end().to_owned();
    for (name, text) in
        [("CRLF", PRISM), ("LF", &only_lf), ("CR", &only_cr), ("byte order mark", &with_mark), ("no end", &no_end)]
    {
        let mesh = parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(mesh.positions().len(), 12, "{name}");
        assert_eq!(mesh.positions()[3], DVec3::new(1.0, 2.0, 0.0), "{name}");
        assert_eq!(mesh.triangles().len(), 20, "{name}");
        // All coordinates are small integers: areas and volumes are exact but for the square roots of 1.
        assert_eq!(area(&mesh), 14.0, "{name}");
        assert_eq!(volume(&mesh), 3.0, "{name}");
    }
    // The control: one corner moved.
    assert_ne!(area(&parse(&PRISM.replace("v 2 1 1", "v 2 1 1.5")).unwrap()), 14.0);
}

#[test]
fn faces_may_stand_before_their_vertices() {
    let square = "f 4 1 2 3\nf 1 2 3 5 4\nv 0 0 0\nv 2 0 0\nv 2 2 0\nv 0 2 0\nv 1 1 0";
    let turned = "v 0 0 0\nv 2 0 0\nv 2 2 0\nv 0 2 0\nv 1 1 0\nf 4 1 2 3\nf 1 2 3 5 4";
    assert_eq!(parse(square).unwrap(), parse(turned).unwrap());
    assert_eq!(area(&parse(square).unwrap()), 4.0 + 3.0);
}

#[test]
fn coordinates_are_rounded_like_any_parser_rounds() {
    for word in [
        "0.1",
        "-0",
        "-0.344588312",
        "123456789012345",
        "1234567890.12345",
        "0.000000000000001",
        "9007199254740993",
        "3.4e38",
        "-1E-5",
        "+2.5",
        ".5",
        "5.",
        "1.17549435e-38",
        "0.30000000000000004",
        "99999999999999999999",
    ] {
        let mesh = parse(&format!("v {word} 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3")).unwrap();
        let expected: f64 = word.parse().unwrap();
        assert_eq!(mesh.positions()[0].x.to_bits(), expected.to_bits(), "{word}");
    }
}

#[test]
fn coordinates_that_are_no_finite_32_bit_number_are_named() {
    for word in [
        "nan",
        "NaN",
        "-1.#IND",
        "1.#QNAN",
        "inf",
        "-infinity",
        "1e39",
        "-3.5e38",
        "1,5",
        "0x10",
        ".",
        "-",
        "1e",
        "\u{e4}",
    ] {
        let error = parse(&format!("# head\nv 0 0 0\nv 0 {word} 0\nv 0 0 1\nf 1 2 3")).expect_err(word);
        assert!(matches!(error, Error::Line { line: 3, .. }), "{word}: {error}");
        let message = error.to_string();
        assert!(message.contains("vertex 1 (0-based)") && message.contains('y') && message.contains(word), "{message}");
    }
    let message = parse("v 1 2\nf 1 1 1").unwrap_err().to_string();
    assert!(message.contains("line 1") && message.contains("z is missing"), "{message}");
}

#[test]
fn faces_that_name_no_vertex_are_named_by_line() {
    let vertices = "v 0 0 0\nv 1 0 0\n\nv 0 1 0\n";
    for (face, part) in [
        ("f 0 1 2", "vertex 0"),
        ("f 1 2 4", "vertex 4"),
        ("f 1 2 -4", "vertex -4"),
        ("f 1 2 3 99999999999999999999999", "vertex"),
        ("f 1 2 4294967296", "vertex 4294967296"),
        ("f 1 2 x", "\"x\""),
        ("f 1 2 3.0", "\"3.0\""),
        ("f 1 2 3/x", "\"3/x\""),
        ("f 1 2 3/1/1/1", "\"3/1/1/1\""),
        ("f 1 \\\n2 \\\n4", "vertex 4"),
        ("f 1 4", "vertex 4"),
    ] {
        let error = parse(&format!("{vertices}{face}\n\nf 1 2 3\n")).expect_err(face);
        assert!(matches!(error, Error::Line { line: 5, .. }), "{face}: {error}");
        assert!(error.to_string().contains(part), "{face}: {error}");
    }
    assert!(parse(&format!("{vertices}f 1 2 3\n")).is_ok());
}

#[test]
fn files_without_faces_or_vertices_say_so() {
    assert!(matches!(parse("v 0 0 0\nv 1 0 0\nl 1 2\nf 1 2\n"), Err(Error::NoFaces)));
    assert!(matches!(parse(""), Err(Error::NoVertices)));
    assert!(matches!(parse("# nothing\n"), Err(Error::NoVertices)));
    let absent = obj::read("no such file.obj").unwrap_err().to_string();
    assert!(absent.contains("no such file.obj"), "{absent}");
}

#[test]
fn normals_are_kept_where_each_vertex_has_exactly_one() {
    let points = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nvn 0 0 1\nvn 0 1 0\nvn 0 0 1\nvn 0 0 0\n";
    let normals = |faces: &str| parse(&format!("{points}{faces}")).unwrap().normals().map(<[DVec3]>::to_vec);
    let up = DVec3::Z;
    assert_eq!(normals("f 1//1 2//1 3//2\nf 2//1 4//-4 3//2"), Some(vec![up, up, DVec3::Y, up]));
    assert_eq!(normals("f 1//1 2//1 3//2\nf 2//3 4//1 3//2"), Some(vec![up, up, DVec3::Y, up]), "equal by value");
    assert_eq!(normals("f 1//1 2//1 3//2\nf 2//2 4//1 3//2"), None, "vertex 2 has two");
    assert_eq!(normals("f 1//1 2//1 3//2\nf 2//1 4 3//2"), None, "vertex 4 has none");
    assert_eq!(normals("f 1//1 2//1 3//2"), None, "vertex 4 has no face");
    assert_eq!(normals("f 1//1 2//1 3//4\nf 2//1 4//1 3//4"), None, "a normal of no length");
    assert_eq!(normals("f 1//1 2//1 3//9\nf 2//1 4//1 3//9"), None, "a normal that is not there");
}

#[test]
fn what_is_written_reads_back() {
    let mesh = parse(PRISM).unwrap();
    let mut text = Vec::new();
    obj::write(&mut text, &mesh).unwrap();
    assert_eq!(obj::parse(&text).unwrap(), mesh);
    let with_normals = mesh.clone().with_normals(vec![DVec3::new(0.0, 0.6, -0.8); 12]).unwrap();
    text.clear();
    obj::write(&mut text, &with_normals).unwrap();
    assert_eq!(obj::parse(&text).unwrap(), with_normals);
}

#[test]
fn texture_coordinates_follow_the_corners_of_split_faces() {
    // A square whose second corner has other coordinates in the triangle beside it; `vt` may come last, and be missing.
    let text = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 2 0 0\n\
                f 1/1 2/2 3/3 4/4\nf 2/5 5/-1 3/9\n\
                vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvt .5\n";
    // Counted back from none so far, -1 names nothing; neither does 9.
    let parsed = obj::parse_all(text.as_bytes()).unwrap();
    let split = parsed.texture.split(&parsed.mesh).unwrap();
    assert_eq!(split.vertices, [0, 1, 2, 3, 4, 1]);
    let expected = [[0., 0.], [1., 0.], [1., 1.], [0., 1.], [0., 0.], [0.5, 0.]];
    assert_eq!(split.coordinates, expected.map(glam::DVec2::from));
    assert_eq!(area(&split.mesh), 1.5);
    // Without coordinates nothing is doubled.
    let bare = obj::parse_all(PRISM.replace("6/1/1 5/2/1 4/3/1 3/1/1 2/2/1 1/3/1", "6 5 4 3 2 1").as_bytes()).unwrap();
    assert_eq!(bare.texture.split(&bare.mesh).unwrap().mesh.positions().len(), 12);
}
