"""Everyday English that no package contains: chats between friends, and questions about them.

Generated from a few hundred words in a few dozen templates, the same on every run.
"""

import random
from collections.abc import Iterator

from prose import TextPair

PAIRS = 90_000
SEED = 6

WORDS = {
    "name": "Anna Ben Carla Daniel Emma Felix Grace Henry Ivy Jack Kim Leo Mia Noah Olivia Paul"
    " Quinn Rosa Sam Tina Uma Victor Wendy Xavier Yara Zoe Ali Priya Kenji Mei Omar Fatima Diego"
    " Lucia Ivan Olga Lars Ingrid Kofi Amara Aisha Hassan Ravi Sana Tom Nora Peter Sarah Mark Julia"
    " Alex Chris Taylor Jordan Morgan Casey Robin Jamie Dana Lee",
    "kin": "mother|father|sister|brother|son|daughter|husband|wife|partner|grandmother|grandfather"
    "|uncle|aunt|cousin|niece|nephew|best friend|neighbour|roommate|boss|colleague|coworker|teacher"
    "|coach|kids|parents|twins|team|old classmate|girlfriend|boyfriend|fiancé",
    "did": "went hiking|baked bread|painted a landscape|ran a marathon|learned to surf|went camping"
    "|visited a museum|planted tomatoes|adopted a puppy|moved to a new flat|started a new job"
    "|quit smoking|broke an arm|bought a used car|sold the house|got engaged|got married"
    "|had a baby|lost a wallet|missed the train|took a pottery class|joined a choir|read a novel"
    "|wrote a poem|watched a documentary|played chess|went to a concert|saw a ballet|cooked a curry"
    "|fixed the bicycle|volunteered at a shelter|donated blood|organised a fundraiser"
    "|went to the dentist|had surgery|caught a cold|slept badly|went swimming in the lake"
    "|climbed a mountain|drove along the coast|flew to Japan|took the ferry|rode a horse"
    "|went fishing|made pasta|grilled fish|threw a party|celebrated a birthday|opened a bakery"
    "|launched a small business|gave a talk|passed an exam|failed the driving test|graduated"
    "|applied for a scholarship|finished a thesis|signed a lease|renovated the kitchen"
    "|built a bookshelf|knitted a scarf|sewed a quilt|took photographs of birds|went birdwatching"
    "|played the violin|practised yoga|started therapy|meditated every morning|lifted weights"
    "|won a tournament|lost the final|coached a football team|danced salsa|went skiing|skated"
    "|had a picnic in the park|walked the dog|fed the cat|cleaned out the garage|repaired the roof"
    "|attended a wedding|went to a funeral|visited the family|reconnected with an old friend"
    "|argued with the landlord|got a promotion|was laid off|asked for a raise|worked night shifts"
    "|took a sabbatical|retired|learned Spanish|studied for finals|tried vegan food|went on a diet"
    "|ordered pizza|drank too much coffee|planned a road trip|booked a hotel|packed the suitcase"
    "|collected stamps|restored an old radio|composed a song|recorded an album|streamed a game"
    "|designed a website|drew a comic|carved a pumpkin|decorated the tree|wrapped presents",
    "place": "the beach|the mountains|a small village|Paris|Tokyo|New York|Berlin|Mexico|the lake"
    "|the woods|grandma's house|the city centre|the gym|the library|a café|the office|school"
    "|the hospital|the airport|a national park|the countryside|the zoo|the market|church"
    "|the community centre|a workshop|the garden|the stadium|the theatre|an island",
    "when": "yesterday|last night|last weekend|last week|two weeks ago|last month|last summer"
    "|last winter|in the spring|in autumn|on Monday|on Friday evening|on Saturday|on Sunday morning"
    "|in January|in March|in May|in July|in September|in December|a year ago|three years ago"
    "|when I was ten|before the holidays|after work|during the vacation|on my birthday"
    "|this morning",
    "feeling": "happy|proud|nervous|exhausted|relieved|sad|lonely|excited|grateful|anxious|angry"
    "|calm|inspired|disappointed|surprised|homesick|hopeful|embarrassed|overwhelmed|peaceful",
    "thing": "guitar|camera|bicycle|necklace|watch|painting|book|telescope|tent|sewing machine"
    "|skateboard|piano|laptop|record player|teapot|rug|lamp|jacket|pair of boots|coffee machine"
    "|vase|kayak|drum kit|board game|puzzle|bracelet|mug|sofa|plant|bird feeder",
    "food": "lasagna|sushi|pancakes|dumplings|tacos|chocolate cake|apple pie|salad|ramen|curry"
    "|roast chicken|ice cream|bread|soup|cheese|strawberries|cookies|paella|falafel|pizza",
    "pet": "dog|cat|rabbit|parrot|hamster|tortoise|horse|goldfish|kitten|puppy|lizard|hen",
    "job": "nurse|teacher|carpenter|lawyer|software engineer|designer|chef|barista|accountant"
    "|farmer|journalist|musician|dancer|counsellor|social worker|photographer|pilot|electrician"
    "|librarian|scientist|dentist|vet|plumber|firefighter|translator|architect|shop owner",
    "hobby": "painting|running|gardening|photography|chess|cooking|climbing|knitting|surfing|yoga"
    "|reading|pottery|birdwatching|cycling|dancing|swimming|singing|woodwork|camping|astronomy"
    "|video games|board games|skiing|fishing|writing|drawing|volunteering|baking|hiking"
    "|martial arts",
    "reason": "to clear my head|because the doctor told me to|to spend time with the family"
    "|for charity|to save money|because I was bored|as a surprise|to celebrate"
    "|to learn something new"
    "|because of the weather|to help a friend|to feel better|for the first time|out of curiosity"
    "|since work has been stressful|to keep a promise|to make new friends|for my health",
    "why": "stress|money|health|family|boredom|friendship|curiosity|love|tradition|a dream|a bet"
    "|a promise|loneliness|the climate|justice|equality|faith|freedom|creativity|recovery",
    "art": "a book about grief|a film about space|a podcast on history|a play about friendship"
    "|a series about cooking|a song about home|a biography of a scientist|a poem about the sea"
    "|a comic about robots|an exhibition of modern art|a concert of classical music|a jazz album",
}
CHOICES = {key: words.split("|") if "|" in words else words.split() for key, words in WORDS.items()}
CHOICES["other"] = CHOICES["name"]

# Statements, and questions about them or paraphrases. {did} is in the past tense, first person.
TEMPLATES: list[tuple[list[str], list[str]]] = [
    (
        [
            "I {did} {when} with my {kin}. It made me {feeling}.",
            "Guess what, {other}! {when}, I {did} {reason}.",
            "So {when} my {kin} and I were at {place} and {did}. I felt so {feeling}!",
            "Hey {other}, long time! I {did} {when}, it was great.",
        ],
        [
            "When did {name} say: I {did}?",
            "Who was with {name} at {place} {when}?",
            "{name} told {other} about it: {did} {when}, {feeling} afterwards.",
            "What did {name} do {when}?",
            "How did {name} feel after it? {feeling}",
        ],
    ),
    (
        [
            "My {kin} gave me a {thing} for my birthday, I was {feeling}!",
            "Look at this {thing}! I got it from my {kin} {when}.",
            "I finally bought a {thing} {when}. I had wanted one for years.",
        ],
        [
            "What did {name} get as a present?",
            "Who gave {name} the {thing}?",
            "The {thing} was a gift from the {kin}.",
            "Which item did {name} buy {when}?",
        ],
    ),
    (
        [
            "I've been into {hobby} for {number} years now. It helps me with {why}.",
            "{hobby} is my favourite way to relax {reason}.",
            "I took up {hobby} {when} and my {kin} joined me.",
            "Do you want to try {hobby} with me at {place}?",
        ],
        [
            "What are {name}'s hobbies?",
            "How long has {name} been doing {hobby}?",
            "What does {name} do to relax?",
            "Which activity does {name} share with the {kin}?",
            "{name} enjoys {hobby} in the free time.",
        ],
    ),
    (
        [
            "We went to {place} {when}. The {food} there was amazing!",
            "I cooked {food} for my {kin} {when}.",
            "My {kin} makes the best {food}, I could eat it every day.",
        ],
        [
            "What did {name} eat at {place}?",
            "What is {name}'s favourite dish?",
            "Where did {name} go {when}?",
            "Who cooked {food}?",
            "{name} likes {food} very much.",
        ],
    ),
    (
        [
            "Our {pet} is called {other}, and follows my {kin} everywhere.",
            "We adopted a {pet} {when}! The kids named it {other}.",
            "My {pet} was sick {when}, I was so {feeling}.",
        ],
        [
            "What is the name of {name}'s {pet}?",
            "Does {name} have any pets?",
            "What kind of animal did {name} adopt?",
            "{name} has a {pet}.",
        ],
    ),
    (
        [
            "I work as a {job} now, I started {when}.",
            "I'd love to become a {job} one day, {reason}.",
            "I quit my job as a {job} {when}. I'm {feeling} about what comes next.",
            "My {kin} is a {job} and inspired me to study for it.",
        ],
        [
            "What is {name}'s profession?",
            "What career does {name} want?",
            "When did {name} change jobs?",
            "Who is a {job}?",
            "What does {name} do for a living?",
        ],
    ),
    (
        [
            "I moved to {place} {number} years ago, I sometimes get {feeling}.",
            "We are planning a trip to {place} next {month}!",
            "I grew up near {place}, my {kin} still lives there.",
        ],
        [
            "Where does {name} live?",
            "Where is {name} travelling in {month}?",
            "When is the trip planned?",
            "Where is {name} originally from?",
            "How long has {name} lived at {place}?",
        ],
    ),
    (
        [
            "I just finished {art}. It left me {feeling}.",
            "You should check out {art}, my {kin} recommended it to me.",
            "{when} we saw {art}, and talked about {why} all night.",
        ],
        [
            "What did {name} read or watch recently?",
            "Which recommendation did {other} get?",
            "What was it about? {why}",
            "{name} was moved by {art}.",
        ],
    ),
    (
        [
            "That's wonderful, {other}! I'm so {feeling} for you. How did your {kin} react?",
            "Oh no, I'm sorry to hear that. Do you want to talk about it over {food}?",
            "Congrats on that! You deserve it after all the work.",
            "Thanks for the kind words, {other}. It means a lot to me.",
            "Sounds like fun! I wish I could have joined you at {place}.",
        ],
        [
            "{name} congratulated {other} and was {feeling}.",
            "{name} offered support to {other}.",
            "How did {name} respond to the news?",
            "Who comforted {other}?",
        ],
    ),
    (
        [
            "I have been thinking a lot about {why} since my {kin} moved away.",
            "I'm raising money {reason}; {number} people came to {place}.",
            "Our group meets every {day} at {place} to talk about {why}.",
        ],
        [
            "What motivates {name}?",
            "How often does the group of {name} meet?",
            "What cause does {name} care about? {why}",
            "How many people attended the event?",
        ],
    ),
]
CHOICES["number"] = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "ten",
    "twelve",
    "twenty",
    "fifty",
]
CHOICES["month"] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
CHOICES["day"] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def small_talk() -> Iterator[TextPair]:
    """Gives small talk in runs of one subject, so that a batch holds pairs that are hard to tell
    apart."""
    rng = random.Random(SEED)
    for _ in range(PAIRS // 16):
        statements, questions = rng.choice(TEMPLATES)
        for _ in range(16):
            words = {key: rng.choice(all_of) for key, all_of in CHOICES.items()}
            statement = rng.choice(statements).format_map(words)
            question = rng.choice(questions).format_map(words)
            if rng.random() < 0.5:
                statement = f"{words['name']}: {statement}"
            yield question, statement[0].upper() + statement[1:]
