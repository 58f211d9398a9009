"""Turns that were written after the weights had been set and are not for setting them: what `used.py` does with texts
that it was not made for."""

from tests.sources.used_cases import Turn

SOURCES: dict[str, str] = {
    "choir": """# Choir
Rehearsals are on Wednesdays at half past seven in the hall of St Brannock.
The subscription is 60 pounds a term and covers the scores.
Sopranos sit by the window, basses by the organ.
The winter concert is on 14 December; everyone wears black with something red.
""",
    "billing": """# Billing service
Invoices are rendered by the worker `ledger-printer` every night at 02:15 UTC.
A failed run leaves a row in billing_retries and is tried again at most four times.
Credit notes are never deleted; they are reversed with a second note.
The feature flag new_tax_engine is on for Norway and Chile only.
""",
    "tent": """# Putting up the big tent
Lay out the groundsheet with the red corner towards the wind.
Slide the two long poles through the blue sleeves before any peg goes in.
Peg the windward side first, then raise both poles together; it takes three people.
Dry the canvas for two days before it is packed, or it will mildew.
""",
    "bees": """# Our hives
The hive by the quince tree has a queen from 2025, marked with a blue dot.
We feed syrup of three parts sugar to two parts water until the end of September.
Varroa is treated with oxalic acid when the colony is without brood, usually around Christmas.
Lift the boxes only when it is warmer than 12 degrees.
""",
    "visa": """# Working abroad
Staff may work from another country for up to 20 days a year.
Tell Human Resources six weeks before, since a certificate A1 has to be requested.
Countries outside the union need the consent of the legal team.
The company laptop must not be taken to countries on the red list.
""",
    "mixer": """# Sound desk
Channel 9 is the lectern microphone; its phantom power must stay off.
Start with the faders at minus ten and the monitors muted.
The scene called Vespers recalls the settings for evening service.
Never unplug the stage box while the desk is on.
""",
    "search": """# Search room
Words and meaning are ranked apart and fused by reciprocal rank with k = 60.
Vectors are kept by content hash, so that a moved note costs nothing.
A query of more than 48 terms is cut to its longest ones.
""",
    "piano": """# Practice plan
Ten minutes of scales in contrary motion, then the left hand of the Bartok alone.
Metronome at 66 for the second movement; add two beats a minute each week.
Lessons with Madame Okonkwo are every other Thursday at five.
""",
    "clinic": """# Reception
New patients fill in form K7 and show their insurance card.
Appointments that are missed without notice cost 25 euros.
Repeat prescriptions are ready after 24 hours at the side window.
Children under six are always seen the same day.
""",
    "bikeshop": """# Workshop prices
A small service is 49 euros and takes one day; a large one is 119 euros and takes three.
Wheels are trued for 15 euros each.
We keep repaired bicycles for ten days free of charge, after that storage is 2 euros a day.
""",
    "polish": """# Zasady biura
Pokój konferencyjny rezerwuje się przez kalendarz najpóźniej dzień wcześniej.
Rachunki za taksówki oddajemy pani Kowalczyk do piątego dnia miesiąca.
""",
    "russian": """# Правила общежития
Гости уходят до одиннадцати вечера и оставляют пропуск у вахтёра.
Стиральные машины работают с семи утра, жетоны продаются в комнате 12.
""",
    "chinese2": """# 健身房须知
会员卡每年三月需要到前台重新登记。
游泳池水温保持在二十七度，周二上午清洗不开放。
""",
    "r_sources": "Name the file that a fact comes from in brackets behind the sentence.",
    "r_rude": "If the user is rude, stay calm and answer only what was asked.",
    "r_brand": "Our product is spelled NorthQuay, and customers are called members.",
    "r_safety": (
        "Before any advice on electrical work say: switch off the breaker and check with a tester that the line is "
        "dead."
    ),
    "r_code": "Code samples are in Python 3.11, fully typed, without comments.",
    "r_budget": "Do not suggest purchases above 200 pounds without naming a cheaper way as well.",
}

TURNS: tuple[Turn, ...] = (
    Turn(
        "When do we sing next week and what do I wear in December?",
        "We rehearse on Wednesday at half past seven in St Brannock's hall. For the winter concert on 14 December wear "
        "black with something red.",
        ("choir",),
        ("piano", "mixer", "r_sources"),
    ),
    Turn(
        "What does it cost to sing with you?",
        "It is 60 pounds a term, and that covers your scores.",
        ("choir",),
        ("bikeshop", "clinic", "r_budget"),
    ),
    Turn(
        "How do choirs usually sit?",
        "There are many ways. Often sopranos and altos stand in front with tenors and basses behind them; mixed "
        "quartets blend better but need confident singers.",
        (),
        ("choir", "mixer"),
    ),
    Turn(
        "Why did customers not get their invoice last night?",
        "Have a look at `billing_retries`: a run of ledger-printer that fails leaves a row there, and after four "
        "attempts nobody tries again.",
        ("billing",),
        ("search", "clinic", "r_code"),
    ),
    Turn(
        "Can I delete a wrong credit note?",
        "No, credit notes stay. Write a second note that reverses it.",
        ("billing",),
        ("visa", "r_rude"),
    ),
    Turn(
        "What is a feature flag?",
        "It is a switch in the code that turns a feature on for some users without a new release. Flags should be "
        "removed once the feature is on for everyone.",
        (),
        ("billing", "r_code", "search"),
    ),
    Turn(
        "In which order do I pitch it when it blows?",
        "First the groundsheet, its red corner into the wind. Push the long poles through the blue sleeves, peg the "
        "windward side, and only then raise the poles, with three of you.",
        ("tent",),
        ("bees", "mixer"),
    ),
    Turn(
        "It rained all weekend. Can I pack the tent away?",
        "Not yet: let the canvas dry for two days, otherwise it will get mildew.",
        ("tent",),
        ("bees", "bikeshop"),
    ),
    Turn(
        "Which tent is good for two people?",
        "For two people a dome tent of about three kilos is a good start. Look for a porch, two doors and a "
        "hydrostatic head of 3,000 millimetres.",
        (),
        ("tent", "r_budget", "bikeshop"),
    ),
    Turn(
        "When do I treat the mites?",
        "Around Christmas, when there is no brood, with oxalic acid.",
        ("bees",),
        ("tent", "clinic"),
    ),
    Turn(
        "How do I make the syrup?",
        "Stir three parts of sugar into two parts of water, and stop feeding when September ends.",
        ("bees",),
        ("clinic", "piano"),
    ),
    Turn(
        "Why are bees important?",
        "They pollinate most of our fruit and vegetables. Without them harvests would be smaller and many wild plants "
        "would vanish, and with them the animals that live on those.",
        (),
        ("bees", "tent"),
    ),
    Turn(
        "I would like to work from Portugal in May, three weeks.",
        "That is 15 working days, which is within the 20 days a year. Tell Human Resources six weeks before, so that "
        "they can request the A1 certificate.",
        ("visa",),
        ("billing", "clinic", "choir"),
    ),
    Turn(
        "And from Brazil?",
        "Brazil is outside the union, so the legal team has to consent. Check the red list too before you take your "
        "company laptop.",
        ("visa",),
        ("billing", "r_sources"),
    ),
    Turn(
        "What is a digital nomad visa?",
        "It is a permit to live in a country while you work remotely for an employer or clients elsewhere. Most ask "
        "for proof of income and health insurance.",
        (),
        ("visa", "clinic"),
    ),
    Turn(
        "The lectern is silent. What can I do?",
        "Check that channel 9 is not muted and its fader is up. Leave the phantom power off.",
        ("mixer",),
        ("choir", "r_safety"),
    ),
    Turn(
        "How do I set up for evening service?",
        "Recall the scene Vespers, with the monitors muted and the faders at minus ten to begin with.",
        ("mixer",),
        ("choir", "piano"),
    ),
    Turn(
        "What is phantom power?",
        "It is a direct voltage, usually 48 volts, that a mixing desk sends through the microphone cable. Condenser "
        "microphones need it.",
        (),
        ("mixer", "r_safety"),
    ),
    Turn(
        "How are the two rankings put together?",
        "By reciprocal rank fusion, with k = 60: words and meaning are ranked on their own first.",
        ("search",),
        ("billing", "mixer"),
    ),
    Turn(
        "What is a vector database?",
        "It stores vectors and finds those nearest to a given one, mostly with an approximate index such as HNSW. It "
        "is used for semantic search and recommendations.",
        (),
        ("search", "billing", "r_code"),
    ),
    Turn(
        "What should I practise today?",
        "Begin with ten minutes of scales in contrary motion, and play the left hand of the Bartok by itself. The "
        "second movement goes at 66.",
        ("piano",),
        ("choir", "mixer"),
    ),
    Turn(
        "How do I stay motivated to practise?",
        "Set small goals, practise at the same time each day, and record yourself every week: hearing progress is the "
        "best motivation. Ten good minutes beat an hour of noodling.",
        (),
        ("piano", "choir"),
    ),
    Turn(
        "I could not come on Monday and forgot to call. Is that a problem?",
        "I am afraid that a missed appointment without notice costs 25 euros.",
        ("clinic",),
        ("bikeshop", "visa"),
    ),
    Turn(
        "My son is four and has a fever.",
        "Bring him in: children under six are seen on the same day.",
        ("clinic",),
        ("r_rude", "piano"),
    ),
    Turn(
        "When is a fever dangerous?",
        "In adults from about 40 degrees on, or when it lasts for more than three days, or comes with a stiff neck or "
        "confusion. Small babies should always be seen by a doctor.",
        (),
        ("clinic", "bees"),
    ),
    Turn(
        "What will the big check of my bike cost, and when is it ready?",
        "The large service is 119 euros and takes three days.",
        ("bikeshop",),
        ("clinic", "choir", "r_budget"),
    ),
    Turn(
        "I cannot fetch it for two weeks.",
        "That is fine. The first ten days are free of charge; after that we ask for 2 euros a day for storage.",
        ("bikeshop",),
        ("clinic", "billing"),
    ),
    Turn(
        "How do I true a wheel myself?",
        "Spin it, see where the rim moves towards the brake, and tighten the spokes on the other side by a quarter of "
        "a turn. Go slowly and check often.",
        (),
        ("bikeshop", "r_budget", "mixer"),
    ),
    Turn(
        "Komu oddać rachunek za taksówkę?",
        "Rachunki za taksówki oddaje się pani Kowalczyk do piątego dnia miesiąca.",
        ("polish",),
        ("russian", "visa"),
    ),
    Turn(
        "Do kiedy можно принимать гостей?",
        "Гости должны уйти до одиннадцати вечера и оставить пропуск у вахтёра.",
        ("russian",),
        ("polish", "r_rude"),
    ),
    Turn(
        "Как приготовить борщ?",
        "Сварите бульон, добавьте свёклу, капусту, картофель и морковь, в конце положите чеснок и зелень. Подавайте со "
        "сметаной.",
        (),
        ("russian", "polish"),
    ),
    Turn(
        "今天可以游泳吗？今天是周二。",
        "周二上午游泳池清洗不开放，下午可以来，水温保持在二十七度。",
        ("chinese2",),
        ("russian", "clinic"),
    ),
    Turn(
        "跑步前要怎么热身？",
        "先慢走五分钟，再做一些动态拉伸，比如高抬腿和弓步走。天气冷的时候多花点时间。",
        (),
        ("chinese2", "piano"),
    ),
    Turn(
        "How do I change a ceiling lamp?",
        "First switch off the breaker and check with a tester that the line is dead. Then loosen the screws of the old "
        "lamp and note which wire goes where.",
        ("r_safety",),
        ("mixer", "r_budget"),
    ),
    Turn(
        "How do I become a member of NorthQuay?",
        "Choose a plan on the page and pay; you are a member at once.",
        (),
        ("r_brand", "choir", "billing"),
    ),
    Turn(
        "What do you sell?",
        "NorthQuay keeps your boat's papers, insurance and service dates in one place.",
        ("r_brand",),
        ("billing", "r_rude"),
    ),
    Turn(
        "You are useless!",
        "I am sorry that this did not help. What would you like me to look at again?",
        (),
        ("r_rude", "r_sources", "r_brand"),
    ),
    Turn(
        "Write a function that adds two numbers.",
        "```python\ndef add(one: int, two: int) -> int:\n    return one + two\n```",
        (),
        ("r_code", "billing", "search"),
    ),
    Turn(
        "Recommend a microphone for podcasts.",
        "The Shure MV7 is popular at about 250 pounds. A cheaper way is the Samson Q2U for around 70, which sounds "
        "surprisingly close.",
        (),
        ("r_budget", "mixer", "piano"),
    ),
    Turn(
        "Tell me a joke.",
        "Why did the scarecrow win a prize? Because he was outstanding in his field.",
        (),
        ("bees", "tent", "r_rude", "visa"),
    ),
    Turn(
        "Draft a mail to all singers that next week's rehearsal is cancelled.",
        "Subject: No rehearsal next week\n\nDear all,\n\nnext Wednesday's rehearsal is cancelled. We meet again the "
        "week after, as usual. Please let me know if you have any questions.\n\nBest wishes",
        (),
        ("mixer", "r_sources", "piano"),
    ),
    Turn(
        "How is UTC different from GMT?",
        "GMT is a time zone based on the sun at Greenwich, UTC a standard kept by atomic clocks. For daily life they "
        "show the same time.",
        (),
        ("billing", "choir"),
    ),
)
