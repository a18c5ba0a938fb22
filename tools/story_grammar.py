"""Stories for the language model of the examples: a grammar with names, things and reasons.

    python -m tools.story_grammar [SEED]

A story is about one child or animal. What it wants, its friend and the place come back in later
sentences, so that a model must remember them.
"""

import random
import sys

__all__ = ["story"]

HEROES = {
    "he": ("Ben", "Tom", "Max", "Leo", "Sam", "Tim"),
    "she": ("Mia", "Lily", "Anna", "Sue", "Emma", "Zoe"),
}
ANIMALS = (
    "cat", "dog", "bird", "fox", "bear", "duck", "frog", "mouse", "rabbit", "pony", "hen", "turtle",
)
COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "pink")
SIZES = ("big", "little", "nice", "new", "soft", "shiny")
THINGS = (
    "ball", "hat", "kite", "boat", "book", "box", "cup", "drum", "car", "doll", "bell", "coat",
)
PLACES = (
    "the park", "the forest", "the garden", "the river", "the beach", "the hill", "the farm",
    "the lake",
)
HIDING = (
    "under a tree", "behind a rock", "in the tall grass", "near the gate", "under a bench",
    "in a hole", "behind the barn",
)
WEATHER = ("sunny", "rainy", "windy", "cold", "warm")
FOOD = ("cake", "soup", "apples", "bread", "honey", "cookies")
PARTS = {"he": ("him", "his", "boy"), "she": ("her", "her", "girl")}


def story(rng: random.Random) -> str:
    """Return a story of some hundred words."""
    pick = rng.choice
    he = pick(("he", "she"))
    him, his, child = PARTS[he]
    name, animal, colour, thing = pick(HEROES[he]), pick(ANIMALS), pick(COLOURS), pick(THINGS)
    size, place, spot, food = pick(SIZES), pick(PLACES), pick(HIDING), pick(FOOD)
    parent = pick(("mom", "dad", "grandma", "grandpa"))
    it = f"{colour} {thing}"
    words = {
        "name": name, "he": he, "He": he.capitalize(), "him": him, "his": his,
        "His": his.capitalize(), "child": child, "animal": animal, "it": it, "size": size,
        "thing": thing, "place": place, "spot": spot, "food": food, "parent": parent,
        "weather": pick(WEATHER), "other": pick([c for c in COLOURS if c != colour]),
    }
    plot = pick((_lost, _gift, _friend))
    return " ".join(sentence.format(**words) for sentence in [*_opening(pick), *plot(pick)])


def _opening(pick):
    yield pick((
        "Once upon a time, there was a {child} named {name}.",
        "One day, a {child} named {name} went to {place}.",
        "There was a little {child} named {name}.",
        "{name} was a happy {child}.",
    ))
    yield pick((
        "{name} had a {size} {it}.", "{He} had a {it} and {he} loved it very much.",
        "{name} liked to play with {his} {it}.", "{His} {parent} gave {him} a {size} {it}.",
    ))
    yield pick((
        "It was a {weather} day.", "Every day, {he} took the {thing} to {place}.",
        "{name} took the {it} everywhere.", "{He} wanted to show the {thing} to {his} {parent}.",
    ))


def _lost(pick):
    yield pick((
        "But one day, the {thing} was gone.", "Then {name} lost the {it} at {place}.",
        "When {name} came home, {he} could not find the {thing}.",
    ))
    yield pick(("{name} was very sad.", "{He} started to cry.", "{He} looked and looked."))
    yield pick((
        'A {animal} saw {him} and asked, "Why are you sad?"',
        'Then a {animal} came and said, "What is wrong, {name}?"',
    ))
    yield pick((
        '"I can not find my {it}," said {name}.', '"My {thing} is gone," {he} said.',
    ))
    yield pick((
        '"I will help you," said the {animal}.',
        'The {animal} said, "Let us look for the {thing}."',
    ))
    yield pick((
        "They looked at {place}, but they only saw a {other} {thing}.",
        "They went to {place} and looked for a long time.", "The {animal} ran to {place}.",
    ))
    yield pick((
        "At last, the {animal} found the {it} {spot}.", "The {it} was {spot}.",
        "Then {name} saw the {it} {spot}.",
    ))
    yield pick((
        '{name} was so happy and said, "Thank you, {animal}!"',
        '"Thank you," said {name}, and {he} gave the {animal} some {food}.',
        "{name} hugged the {animal} and took the {thing} home.",
    ))
    yield from _ending(pick)


def _gift(pick):
    yield pick((
        "At {place}, {name} met a {animal}.", "One day, {he} saw a {animal} {spot}.",
        "Near {place}, there was a {animal}.",
    ))
    yield pick((
        "The {animal} was cold and hungry.", "The {animal} had no toys.",
        "The {animal} looked at the {thing}.",
    ))
    yield pick((
        '"Can I play with your {it}?" asked the {animal}.',
        'The {animal} said, "I like your {thing}."',
    ))
    yield pick((
        "{name} did not want to share at first.", "{name} thought about it for a long time.",
        "{name} was not sure.",
    ))
    yield pick((
        'But {his} {parent} said, "It is good to share."',
        "But {he} saw that the {animal} was sad.",
    ))
    yield pick((
        'So {name} said, "You can have the {it}."', "So {he} gave the {thing} to the {animal}.",
    ))
    yield pick((
        "The {animal} was so happy and jumped up and down.",
        'The {animal} smiled and said, "You are very kind, {name}."',
    ))
    yield pick((
        "Then they ate {food} together.", "The {animal} gave {him} some {food}.",
        "They played with the {it} at {place}.",
    ))
    yield from _ending(pick)


def _friend(pick):
    yield pick((
        "{name} wanted to make {food} with {his} {parent}.", "{name} was hungry and wanted {food}.",
    ))
    yield pick((
        "But there was a big storm.", "But the door was closed.", "But it was dark outside.",
    ))
    yield pick((
        "A {animal} sat {spot} and was afraid.", "Then {he} heard a noise. It was a {animal}.",
    ))
    yield pick((
        '"Do not be afraid," said {name}.', '{name} said, "Come with me, little {animal}."',
    ))
    yield pick((
        "{He} put the {animal} into the {it}.", "{He} let the {animal} sleep on the {it}.",
        "{He} showed the {it} to the {animal}.",
    ))
    yield pick((
        "The {animal} was not afraid any more.", "Soon the {animal} was warm and happy.",
    ))
    yield pick((
        "{His} {parent} made {food} for all of them.",
        'Then {his} {parent} came and said, "You are a good {child}, {name}."',
    ))
    yield pick((
        "The next day, {name} and the {animal} went to {place}.",
        "The next day, the {animal} came back to play with the {thing}.",
    ))
    yield from _ending(pick)


def _ending(pick):
    yield pick((
        "From that day on, {name} and the {animal} were best friends.",
        "{name} and the {animal} played together every day.",
        "{name} went home and told {his} {parent} about the {animal}.",
        "That night, {name} dreamed of the {animal} and the {it}.",
    ))
    if pick((True, False)):
        yield pick((
            "{name} learned that it is good to help.", "They were very happy.", "The end.",
        ))


def main() -> int:
    """Print a story."""
    print(story(random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
