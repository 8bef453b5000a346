"""Names find places of their own."""

from itertools import combinations

from g2n2.reports.figures.labels import NEAR, NOWHERE, arrange

FRAME = (0.0, 0.0, 400.0, 300.0)


def box(centre, size, side):
    """Left, bottom, right and top of a name, worked out anew."""
    (x, y), (width, height), (along, above, far) = centre, size, side
    left = {1: x + far, 0: x - width / 2, -1: x - far - width}[along]
    bottom = {1: y + far, 0: y - height / 2, -1: y - far - height}[above]
    return left, bottom, left + width, bottom + height


def apart(one, other):
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_close_points_get_names_that_cover_nothing():
    centres = [(200.0 + 8 * (k % 3), 150.0 + 9 * (k // 3)) for k in range(6)]
    sizes = [(60.0, 9.0)] * 6
    sides = arrange(centres, sizes, FRAME, [0.0] * 6)
    assert NOWHERE not in sides
    boxes = [box(*each) for each in zip(centres, sizes, sides, strict=True)]
    assert all(apart(one, other) for one, other in combinations(boxes, 2))
    dots = [(x - 3, y - 3, x + 3, y + 3) for x, y in centres]
    assert all(apart(one, dot) for one in boxes for dot in dots)
    assert all(b[0] >= 0 and b[1] >= 0 and b[2] <= 400 and b[3] <= 300 for b in boxes)


def test_a_lone_point_has_its_name_beside_it_unless_the_frame_ends_there():
    assert arrange([(200.0, 150.0)], [(60.0, 9.0)], FRAME, [0.0]) == [(1, 0, NEAR)]
    ((along, _, _),) = arrange([(398.0, 150.0)], [(60.0, 9.0)], FRAME, [0.0])
    assert along == -1


def test_no_name_lies_on_a_bar():
    centres, sizes = [(200.0, 150.0), (185.0, 120.0)], [(60.0, 9.0)] * 2
    sides = arrange(centres, sizes, FRAME, [60.0, 2.0])
    assert NOWHERE not in sides
    bar = (198.0, 90.0, 202.0, 210.0)
    assert all(apart(box(*each), bar) for each in zip(centres, sizes, sides, strict=True))
