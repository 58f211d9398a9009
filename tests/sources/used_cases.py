"""Turns with what went into their windows, and which of it the reply really used: the set that `used.py` is held
against. Every source of a turn is a case; those not used are near misses wherever one could be thought of."""

from dataclasses import dataclass

SOURCES: dict[str, str] = {
    # references
    "api": """# Orders API
All requests go to https://api.harbourmart.example/v3 and carry a bearer token.
Tokens expire after 45 minutes; refresh them with POST /auth/refresh.
The rate limit is 120 requests per minute for each key. Beyond it the server answers 429 with a Retry-After header.
Pagination uses the `cursor` parameter; a page holds 50 orders at most.
Set `idempotency_key` on every POST so that a repeated call does not create a second order.
""",
    "deploy": """# How we deploy
Releases go out on Tuesdays and Thursdays before noon, never on a Friday.
Run `make ship STAGE=canary` first, watch the error budget for twenty minutes, then `make ship STAGE=full`.
A rollback is `make ship STAGE=back`; it takes about ninety seconds.
Whoever deploys tells the channel #ship-log and stays reachable for two hours.
""",
    "boat": """# Sorrel
Sorrel is a wooden cutter, built in 1936 by Nielsen & Sons in Svendborg.
She is 9.4 metres long, draws 1.65 metres and carries 48 square metres of sail.
The engine is a Volvo Penta MD2B with 25 horsepower; it burns roughly 2.5 litres of diesel an hour.
Her planks are larch on oak frames, fastened with copper rivets.
The bilge pump sits under the companionway and is tested on the first Sunday of each month.
""",
    "harbour": """# Harbour rules
Visitors tie up at the eastern pontoon and pay at the kiosk before six in the evening.
The berth fee is 18 euros a night, electricity and showers included.
The channel is dredged to 2.1 metres at mean low water.
Quiet hours run from ten at night until seven in the morning.
""",
    "holiday": """# Leave
Full-time staff have 28 days of paid leave a year, and three more after five years of service.
Ask for leave at least two weeks ahead in the portal; your team lead decides within three working days.
Up to five unused days move into the next year and lapse at the end of March.
""",
    "expenses": """# Expenses
Receipts are due within 30 days of the purchase.
Meals are refunded up to 35 euros a day when travelling, hotels up to 140 euros a night.
Anything above 500 euros needs the approval of Ingrid Halvorsen in finance beforehand.
Mileage is paid at 0.38 euros per kilometre.
""",
    "schema": """# Tables
`customers` has id, full_name, email and created_at.
`invoices` has id, customer_id, total_cents, due_on and settled_at; settled_at is null while it is open.
Amounts are stored as integers in cents, never as floats.
The view `overdue_invoices` joins both and lists those past due_on.
""",
    "bread": """# Rye sourdough
Mix 300 g rye flour with 240 ml water at 38 degrees and 60 g of starter; leave it for sixteen hours.
Add 12 g salt, 200 g wheat flour and 110 ml water, and knead for four minutes.
Prove it in a tin for ninety minutes, then bake at 235 degrees for fifteen minutes and at 200 for another forty.
Let the loaf rest a full day before it is cut: the crumb sets slowly.
""",
    "garden": """# The allotment
Plot 17 belongs to us; the water key hangs behind the shed door.
Tomatoes go out after the Ice Saints in the middle of May, when night frosts are over.
Potatoes rotate through the four beds so that none has them twice within four years.
Slugs are kept off the lettuce with a ring of sharp sand.
""",
    "router": """# Home network
The router is a Fritzbox 7590 in the hall cupboard; its page is at http://192.168.178.1.
Guests use the network Seagull with the password on the fridge.
When the line drops, unplug the modem for thirty seconds and wait until the DSL lamp is steady.
""",
    "physio": """# Knee exercises from the clinic
Do three sets of twelve straight-leg raises every morning, holding each for five seconds.
Cycle on a flat road for at most forty minutes until the swelling is gone.
No squats deeper than sixty degrees before the check-up with Dr Amara Osei on 9 December.
""",
    "style_py": """# Python in this repository
Functions stay under twenty lines; a file seldom exceeds three hundred.
Use frozen dataclasses for values and never mutate an argument.
We format with ruff at 120 columns and type-check with mypy in strict mode.
Tests are named as sentences, for example test_a_removed_source_comes_back.
""",
    "retry": """def backoff(attempt: int, base_s: float = 0.25, ceiling_s: float = 12.0) -> float:
    spread = random.uniform(0.5, 1.5)
    return min(ceiling_s, base_s * 2 ** attempt) * spread
""",
    "museum": """# Visiting the Kittler House
Open Wednesday to Sunday from eleven to half past five; closed on public holidays except Easter Monday.
A ticket is 9 euros, reduced 6; children under fourteen go free.
Photographs are allowed without flash. Bags larger than A4 stay in the lockers, which take a two-euro coin.
Ernestine Kittler painted the winter garden ceiling in 1911.
""",
    "lease": """# Flat in Bramble Street
The rent is 940 euros, due on the third working day of the month.
Either side may give notice three months to the end of a quarter.
The tenant repaints every seven years and keeps the boiler serviced each autumn.
Subletting needs the written consent of Mrs Pellegrino.
""",
    "security": """# Security guide
Never build SQL by joining strings; bind parameters.
Secrets live in the vault at /srv/lockbox and are rotated every 90 days.
Sessions end after fifteen minutes without activity.
Report a suspected leak to redteam@harbourmart.example within an hour.
""",
    "kubernetes": """# Cluster notes
The production cluster is called narwhal and runs in two zones.
Every deployment sets requests and limits; a pod without limits is evicted first.
Logs are kept for 14 days in the bucket gs://narwhal-logs.
Use `kubectl --context narwhal-prod` only with a second person watching.
""",
    "onboarding": """# First week
On Monday you get your laptop from Tomasz in room 2.14 and set up two-factor login.
On Tuesday you pair with your buddy on a small ticket from the board called Shallow End.
By Friday you have shipped one change, however small.
""",
    "french": """# Service client
Les retours sont acceptés pendant quarante-cinq jours à compter de la livraison.
Le remboursement arrive sous dix jours ouvrés sur le moyen de paiement d'origine.
Les articles soldés ne sont ni repris ni échangés, sauf défaut de fabrication.
""",
    "german": """# Werkstatt
Die Hobelmaschine wird jeden Freitag abgesaugt und einmal im Quartal geölt.
Wer an der Kreissäge arbeitet, trägt Gehörschutz und eine Schutzbrille.
Restholz kommt in die blaue Kiste neben dem Tor; der Schlüssel liegt bei Frau Wiesner.
""",
    "spanish": """# Biblioteca
Los libros se prestan durante veintiún días y se pueden renovar dos veces.
La multa por retraso es de veinte céntimos por día y ejemplar.
La sala de estudio se reserva en el mostrador de la segunda planta.
""",
    "chinese": """# 退货政策
商品签收后三十天内可以申请退货，运费由卖家承担。
退款会在五个工作日内原路退回。
定制商品和已拆封的软件不支持退货。
""",
    "japanese": """# 社内規則
会議室の予約は前日の午後五時までに総務部へ連絡してください。
有給休暇の申請は二週間前までに上司の承認を得る必要があります。
ゴミの分別は月曜日が可燃、木曜日が資源です。
""",
    "korean": """# 사무실 안내
회의실 예약은 하루 전까지 총무팀에 신청해야 합니다.
주차권은 지하 일층 안내 데스크에서 받을 수 있습니다.
""",
    "thai": """# ร้านกาแฟ
ร้านเปิดทุกวันยกเว้นวันจันทร์ตั้งแต่เจ็ดโมงเช้าถึงหกโมงเย็น
สมาชิกได้รับส่วนลดสิบเปอร์เซ็นต์เมื่อสั่งเครื่องดื่มเกินสองแก้ว
""",
    "coffee": """# Espresso at home
Weigh 18 grams of coffee for a double and aim for 36 grams in the cup after about 28 seconds.
If it runs faster, grind finer; if it drips, grind coarser.
Descale the machine every two months with citric acid.
""",
    "glossary": """# Words we use
A window is what the model sees; a cut is what leaves it; a pick is what came in, with its because.
Low water is the size to which a compaction brings the window down.
""",
    "train": """# Commute
The 7:42 from Bramble Street reaches the office at 8:19; on Fridays it runs ten minutes later.
Bicycles are carried in the last coach only, with a ticket of 3.20 euros.
""",
    "cat": """# Miso
Miso is fed twice a day, 40 grams of the kidney diet each time, and gets half a tablet of Semintra at night.
Her vet is Doctor Lindqvist at the clinic in Tanner Row, phone 0171 555 0192.
She hides under the bath when strangers come.
""",
    "camera": """# Astro settings
For the Milky Way open the lens to f/1.8, set ISO 3200 and expose for 15 seconds on a tripod.
Focus by hand on a bright star with the screen magnified ten times.
""",
    # rules
    "r_french": "Always answer in French, whatever the language of the question.",
    "r_metric": "Use metric units only.",
    "r_short": "Keep answers short: three sentences at most, no lists.",
    "r_question": "End every answer with a question that helps the user to think further.",
    "r_signoff": 'Close every message to a customer with the line "Fair winds, your Harbourmart crew".',
    "r_ticket": "Whenever a bug is confirmed, tell the user to file it under TIDE-BUGS with the label needs-triage.",
    "r_medical": (
        "When someone asks about symptoms, say that you are no substitute for a doctor and name the night line 116117."
    ),
    "r_quotes": "Cite page numbers when you quote from a book.",
    "r_polite": "Be polite and friendly. Let the user know if you need more information.",
    "r_commit": (
        "Commit subjects are in the imperative, at most 60 characters, and name the room that changes, "
        "like `store: keep texts by hash`."
    ),
    "r_legal": (
        "This is general information and not legal advice; for a binding answer the user should consult a licensed "
        "attorney."
    ),
    "r_names": "Call the assistant Pilot Otter and never mention the model behind it.",
    "r_tables": "Prefer a Markdown table when comparing more than two things.",
    "r_tests": "Every change comes with a test that fails without it.",
    "r_prices": "Never promise delivery dates. Prices are always quoted without VAT and valid for 21 days.",
}


@dataclass(frozen=True, slots=True)
class Turn:
    asked: str
    reply: str
    used: tuple[str, ...]
    """Of the sources that were given."""
    unused: tuple[str, ...]


TURNS: tuple[Turn, ...] = (
    # words of the source, as they stand
    Turn(
        "How do I refresh my login?",
        "Tokens expire after 45 minutes; refresh them with `POST /auth/refresh` and store the new one.",
        ("api",),
        ("security", "kubernetes", "r_short"),
    ),
    Turn(
        "What happens if I call it too often?",
        "Each key gets **120 requests per minute**. After that you receive a 429 and should wait as long as the "
        "`Retry-After` header says.",
        ("api",),
        ("retry", "security", "r_polite"),
    ),
    Turn(
        "Why is my page of results cut off?",
        "Results come in pages. Pass the cursor of the last answer to get the next one; there are at most 50 orders on "
        "a page.",
        ("api",),
        ("schema", "style_py"),
    ),
    Turn(
        "My script sometimes orders twice. Why?",
        "A network hiccup probably made your client repeat the call. Send an `idempotency_key` with each POST and the "
        "server will recognise the repetition.",
        ("api",),
        ("retry", "deploy"),
    ),
    Turn(
        "What is a bearer token?",
        "A bearer token is a string that whoever holds it can use to authenticate. It is sent in the Authorization "
        "header of a request, so keep it secret and send it over TLS only.",
        (),
        ("api", "security", "r_short"),
    ),
    Turn(
        "How does rate limiting work in general?",
        "A server counts how many requests a client makes in some period. Common algorithms are the token bucket, the "
        "leaky bucket and the sliding window. When a client exceeds the limit, it is usually told to slow down.",
        (),
        ("api", "retry", "glossary"),
    ),
    Turn(
        "Can I release this today? It is Friday.",
        "Better not: releases go out on Tuesdays and Thursdays before noon. Plan it for Tuesday.",
        ("deploy",),
        ("kubernetes", "onboarding"),
    ),
    Turn(
        "The new version throws errors. How do I get back?",
        "Run `make ship STAGE=back` now. Rolling back takes roughly ninety seconds; tell #ship-log once it is done.",
        ("deploy",),
        ("kubernetes", "retry", "r_ticket"),
    ),
    Turn(
        "What is a canary release?",
        "In a canary release a small share of the traffic gets the new version first. If the error rate stays normal, "
        "the rollout continues; if not, you roll back before most users notice.",
        (),
        ("deploy", "kubernetes"),
    ),
    Turn(
        "How do I write a Makefile target?",
        "A target is a name followed by a colon and its prerequisites; the lines below it, indented by a tab, are the "
        "commands. Run it with `make name`.",
        (),
        ("deploy", "style_py", "r_commit"),
    ),
    Turn(
        "How much water does Sorrel need under her?",
        "She draws 1.65 metres, so with some margin you want about two metres of water.",
        ("boat",),
        ("harbour", "physio", "train"),
    ),
    Turn(
        "Can Sorrel get into the harbour at low tide?",
        "Yes, but only just: the channel is dredged to 2.1 metres at mean low water and the cutter draws 1.65 metres.",
        ("boat", "harbour"),
        ("router", "r_short"),
    ),
    Turn(
        "Who built her?",
        "She was built by Nielsen & Sons in Svendborg in 1936.",
        ("boat",),
        ("museum", "harbour"),
    ),
    Turn(
        "How many hours can I motor with 40 litres?",
        "The MD2B uses about 2.5 litres an hour, so 40 litres last for some sixteen hours.",
        ("boat",),
        ("bread", "train"),
    ),
    Turn(
        "What is larch good for?",
        "Larch is a durable softwood. Its resin makes it resist rot, which is why it is popular for cladding, decking "
        "and boat planking.",
        (),
        ("boat", "german"),
    ),
    Turn(
        "How do I splice a rope?",
        "Unlay the strands, marry the ends, and tuck each strand over one and under the next, three times at least. "
        "Taper the splice by halving the strands before the last tucks.",
        (),
        ("boat", "harbour", "garden"),
    ),
    Turn(
        "Where do we moor tonight and what does it cost?",
        "Tie up at the eastern pontoon. A night is 18 euros including power and showers; pay at the kiosk before six.",
        ("harbour",),
        ("expenses", "museum", "boat"),
    ),
    Turn(
        "When should we be quiet?",
        "From ten at night until seven in the morning.",
        ("harbour",),
        ("museum", "train", "holiday"),
    ),
    Turn(
        "How long is a sea mile?",
        "A nautical mile is 1,852 metres, one minute of arc along a meridian.",
        (),
        ("boat", "harbour", "r_metric"),
    ),
    Turn(
        "How many days off do I have after six years?",
        "You have 31 days: the 28 days of paid leave for full-time staff plus three more, because you have been here "
        "for over five years.",
        ("holiday",),
        ("expenses", "onboarding"),
    ),
    Turn(
        "I still have four days left in December. Do I lose them?",
        "No. Up to five days that you have not used carry over into next year, but they lapse when March ends.",
        ("holiday",),
        ("lease", "physio", "expenses"),
    ),
    Turn(
        "How do I ask my boss for a holiday nicely?",
        "Pick a calm moment, give the dates, say how your work is covered, and thank them. Asking early always helps.",
        (),
        ("holiday", "r_polite"),
    ),
    Turn(
        "Can I book a hotel for 150 euros?",
        "Hotels are refunded up to 140 euros a night, so ten euros would be your own.",
        ("expenses",),
        ("harbour", "museum", "lease"),
    ),
    Turn(
        "I want to buy a monitor for 620 euros.",
        "Then get the approval of Ingrid Halvorsen first, and hand in the receipt within 30 days.",
        ("expenses",),
        ("lease", "onboarding", "train"),
    ),
    Turn(
        "What is the difference between net and gross?",
        "Gross is the full amount before anything is taken off; net is what remains after taxes and other deductions.",
        (),
        ("expenses", "r_prices", "schema"),
    ),
    Turn(
        "Write a query for customers who still owe us money.",
        "```sql\nSELECT c.full_name, sum(i.total_cents) / 100.0 AS owed\nFROM invoices i\n"
        "JOIN customers c ON c.id = i.customer_id\nWHERE i.settled_at IS NULL\nGROUP BY c.id\n```",
        ("schema",),
        ("api", "security", "style_py"),
    ),
    Turn(
        "Is there anything ready-made for late payers?",
        "Yes, query the view `overdue_invoices`.",
        ("schema",),
        ("expenses", "lease"),
    ),
    Turn(
        "What is a foreign key?",
        "A foreign key is a column whose values must exist in another table, for example a customer's number in a "
        "table of invoices. The database refuses rows that break the rule.",
        (),
        ("schema", "security"),
    ),
    Turn(
        "How long do I bake the rye loaf?",
        "Bake at 235 degrees for fifteen minutes and at 200 for another forty, then let it rest for a full day.",
        ("bread",),
        ("coffee", "physio"),
    ),
    Turn(
        "Why is my rye bread gummy inside?",
        "Most likely you cut it too early. Give the loaf a whole day of rest, since the crumb is slow to set.",
        ("bread",),
        ("coffee", "garden"),
    ),
    Turn(
        "How do I make pancakes?",
        "Whisk 200 g flour, two eggs, 300 ml milk and a pinch of salt. Rest the batter for half an hour, then fry thin "
        "layers in butter until golden on both sides.",
        (),
        ("bread", "coffee", "r_metric"),
    ),
    Turn(
        "When can the tomatoes go outside?",
        "Wait for the Ice Saints in mid-May; after that night frosts are over.",
        ("garden",),
        ("bread", "boat"),
    ),
    Turn(
        "Something eats my lettuce.",
        "Those are probably slugs. Put a ring of sharp sand around the plants to keep them off.",
        ("garden",),
        ("cat", "harbour"),
    ),
    Turn(
        "How do I prune an apple tree?",
        "Cut in late winter. Remove dead and crossing branches first, then shorten the leaders by a third, always "
        "above a bud that faces outwards.",
        (),
        ("garden", "german"),
    ),
    Turn(
        "The internet is gone again!",
        "Unplug the modem for thirty seconds, plug it in again and wait until the DSL lamp stays steady.",
        ("router",),
        ("kubernetes", "coffee"),
    ),
    Turn(
        "What does a router do?",
        "A router forwards packets between networks. At home it connects your devices with the line of your provider, "
        "hands out addresses and usually offers Wi-Fi as well.",
        (),
        ("router", "api"),
    ),
    Turn(
        "How do I get to the settings of my Fritzbox?",
        "Open http://192.168.178.1 in a browser and log in.",
        ("router",),
        ("security", "onboarding"),
    ),
    Turn(
        "May I cycle with my knee?",
        "Yes, on flat roads and no longer than forty minutes, as long as it is swollen.",
        ("physio",),
        ("train", "r_medical", "garden"),
    ),
    Turn(
        "What should I do in the morning for the knee?",
        "Three sets of twelve straight-leg raises; hold each one for five seconds.",
        ("physio",),
        ("cat", "coffee"),
    ),
    Turn(
        "Why do muscles ache after sport?",
        "Small tears in the fibres and the inflammation that follows cause the ache. It peaks after one to three days "
        "and fades by itself; light movement helps.",
        (),
        ("physio", "r_short"),
    ),
    Turn(
        "Review: def f(a, b=[]): b.append(a); return b",
        "The default list is shared between calls, so it grows. Besides, we never mutate an argument: return a new "
        "list, or use a frozen dataclass for the value.",
        ("style_py",),
        ("retry", "schema", "r_tests"),
    ),
    Turn(
        "What is a dataclass?",
        "A dataclass is a class for which Python writes `__init__`, `__repr__` and `__eq__` from its annotated fields. "
        "With `frozen=True` instances cannot be changed.",
        (),
        ("style_py", "schema"),
    ),
    Turn(
        "How long does the fifth retry wait?",
        "With base_s = 0.25 the fifth attempt would wait 8 seconds, spread by a factor between 0.5 and 1.5, and never "
        "above ceiling_s.",
        ("retry",),
        ("api", "coffee"),
    ),
    Turn(
        "What is exponential backoff?",
        "After each failure you wait twice as long as before, usually with some random jitter so that clients do not "
        "come back all at once.",
        (),
        ("retry", "api", "style_py"),
    ),
    Turn(
        "Can we visit on Monday with two kids of ten and twelve?",
        "The house is closed on Mondays, apart from Easter Monday. From Wednesday to Sunday it opens at eleven; "
        "children under fourteen go free.",
        ("museum",),
        ("holiday", "harbour"),
    ),
    Turn(
        "Who painted the ceiling?",
        "Ernestine Kittler painted it in 1911.",
        ("museum",),
        ("boat", "lease"),
    ),
    Turn(
        "Which museums in Berlin are worth a visit?",
        "The Pergamon Museum, the Neues Museum and the Gemäldegalerie are the classics. Many are closed on Mondays, "
        "and a combined ticket is usually cheaper.",
        (),
        ("museum", "train"),
    ),
    Turn(
        "When can I leave the flat if I write today, in May?",
        "Notice runs for three months to the end of a quarter, so you would be out at the end of September.",
        ("lease",),
        ("holiday", "harbour"),
    ),
    Turn(
        "May my cousin live here for the summer?",
        "That would be subletting, so ask Mrs Pellegrino for her consent in writing.",
        ("lease",),
        ("holiday", "cat", "museum"),
    ),
    Turn(
        "What is a security deposit?",
        "It is money that a tenant leaves with the landlord against damage or unpaid rent. It is returned after moving "
        "out, less what is owed.",
        (),
        ("lease", "security", "r_legal"),
    ),
    Turn(
        "Someone posted our key on the web, what now?",
        "Write to redteam@harbourmart.example right away, you have one hour, and rotate the secret.",
        ("security",),
        ("router", "deploy", "api"),
    ),
    Turn(
        "How do I avoid SQL injection?",
        "Use prepared statements: the database gets the text of the query and the values apart from each other, so a "
        "value can never become code.",
        (),
        ("security", "schema", "api"),
    ),
    Turn(
        "Where are the logs of last week?",
        "They are in `gs://narwhal-logs`, where they stay for 14 days.",
        ("kubernetes",),
        ("deploy", "security"),
    ),
    Turn(
        "Why was my pod killed?",
        "A pod without limits is evicted first when a node runs out of memory. Set requests and limits in your "
        "deployment.",
        ("kubernetes",),
        ("deploy", "cat"),
    ),
    Turn(
        "What is a pod?",
        "A pod is the smallest unit that Kubernetes schedules: one or more containers that share a network address and "
        "volumes.",
        (),
        ("kubernetes", "deploy", "garden"),
    ),
    Turn(
        "I start on Monday. Where do I go?",
        "Tomasz in room 2.14 has your laptop. On Tuesday you will pair with your buddy on a ticket from Shallow End.",
        ("onboarding",),
        ("holiday", "train"),
    ),
    Turn(
        "Any tips for a new job?",
        "Listen first, take notes, ask who decides what, and look for a small thing that you can finish in your first "
        "days. Have lunch with different people.",
        (),
        ("onboarding", "holiday", "r_polite"),
    ),
    # other languages
    Turn(
        "Puis-je renvoyer une veste soldée ?",
        "Malheureusement non : les articles soldés ne sont ni repris ni échangés, sauf défaut de fabrication.",
        ("french",),
        ("spanish", "r_french"),
    ),
    Turn(
        "Quand serai-je remboursée ?",
        "Votre remboursement arrivera sous dix jours ouvrés, sur le moyen de paiement utilisé à l'origine.",
        ("french",),
        ("expenses", "r_french"),
    ),
    Turn(
        "Comment écrire une lettre de réclamation ?",
        "Commencez par vos coordonnées, rappelez la date et le numéro de la commande, décrivez le problème et dites ce "
        "que vous attendez.",
        (),
        ("french", "r_french", "r_polite"),
    ),
    Turn(
        "Was brauche ich an der Kreissäge?",
        "An der Kreissäge trägst du Gehörschutz und eine Schutzbrille.",
        ("german",),
        ("garden", "onboarding"),
    ),
    Turn(
        "Wohin mit den Resten?",
        "Restholz gehört in die blaue Kiste neben dem Tor. Den Schlüssel hat Frau Wiesner.",
        ("german",),
        ("router", "garden"),
    ),
    Turn(
        "Wie schärfe ich einen Hobel?",
        "Lege das Eisen mit der Fase auf den Stein und ziehe es gleichmäßig, bis ein feiner Grat entsteht. Danach wird "
        "die Spiegelseite abgezogen.",
        (),
        ("german", "boat"),
    ),
    Turn(
        "¿Cuánto tiempo puedo quedarme el libro?",
        "Veintiún días, y lo puedes renovar dos veces.",
        ("spanish",),
        ("french", "holiday"),
    ),
    Turn(
        "¿Y si lo devuelvo tarde?",
        "Entonces pagas una multa de veinte céntimos por día y ejemplar.",
        ("spanish",),
        ("expenses", "lease"),
    ),
    Turn(
        "¿Qué novelas me recomiendas?",
        "Prueba con Rayuela, La casa de los espíritus o Nada. Son muy distintas entre sí y cada una vale la pena.",
        (),
        ("spanish", "museum"),
    ),
    Turn(
        "我买的衣服不合适怎么办？",
        "您可以在商品签收后三十天内申请退货，运费由卖家承担。",
        ("chinese",),
        ("japanese", "french"),
    ),
    Turn(
        "软件可以退吗？",
        "很抱歉，已拆封的软件和定制商品都不支持退货。",
        ("chinese",),
        ("api", "korean"),
    ),
    Turn(
        "怎样选择一台笔记本电脑？",
        "先想清楚用途，再看处理器、内存和屏幕。经常出门的话，重量和电池更重要。",
        (),
        ("chinese", "onboarding"),
    ),
    Turn(
        "会議室はどうやって予約しますか。",
        "前日の午後五時までに総務部へ連絡してください。",
        ("japanese",),
        ("chinese", "korean"),
    ),
    Turn(
        "ゴミはいつ出せますか。",
        "可燃ゴミは月曜日、資源は木曜日です。",
        ("japanese",),
        ("garden", "r_short"),
    ),
    Turn(
        "東京でおすすめの観光地は？",
        "浅草寺と明治神宮は定番です。天気が良ければ、展望台から富士山が見えることもあります。",
        (),
        ("japanese", "museum"),
    ),
    Turn(
        "주차는 어떻게 하나요?",
        "지하 일층 안내 데스크에서 주차권을 받을 수 있습니다.",
        ("korean",),
        ("japanese", "train"),
    ),
    Turn(
        "한국에서 가볼 만한 곳은 어디인가요?",
        "경주와 제주도를 추천합니다. 경주는 역사가 깊고 제주도는 바다가 아름답습니다.",
        (),
        ("korean", "museum"),
    ),
    Turn(
        "ร้านเปิดวันไหนบ้าง",
        "ร้านเปิดทุกวันยกเว้นวันจันทร์ตั้งแต่เจ็ดโมงเช้าถึงหกโมงเย็นค่ะ",
        ("thai",),
        ("coffee", "museum"),
    ),
    # small facts
    Turn(
        "How do I pull a double espresso?",
        "Take 18 grams in, 36 grams out, in about 28 seconds. Too fast means that you should grind finer.",
        ("coffee",),
        ("bread", "camera"),
    ),
    Turn(
        "Why does espresso taste sour?",
        "Sour usually means under-extracted. Make the water hotter, let it run longer, or use a finer grind.",
        (),
        ("coffee", "bread", "r_short"),
    ),
    Turn(
        "What does low water mean here?",
        "It is the size that a compaction brings the window down to.",
        ("glossary",),
        ("harbour", "boat"),
    ),
    Turn(
        "What is low water on a coast?",
        "It is the lowest level that the sea reaches between two tides.",
        (),
        ("glossary", "harbour", "boat"),
    ),
    Turn(
        "When am I at the office on a normal day?",
        "The 7:42 gets you there at 8:19.",
        ("train",),
        ("onboarding", "holiday"),
    ),
    Turn(
        "Can I take my bike?",
        "Yes, in the last coach, with a bicycle ticket for 3.20 euros.",
        ("train",),
        ("museum", "physio"),
    ),
    Turn(
        "How much does Miso eat?",
        "40 grams of the kidney diet, twice a day, and half a tablet of Semintra at night.",
        ("cat",),
        ("bread", "coffee"),
    ),
    Turn(
        "Whom do I call if she gets worse?",
        "Call Doctor Lindqvist in Tanner Row on 0171 555 0192.",
        ("cat",),
        ("physio", "r_medical"),
    ),
    Turn(
        "Do cats dream?",
        "Very likely. They go through REM sleep like us, and their paws and whiskers twitch while they do.",
        (),
        ("cat", "r_medical"),
    ),
    Turn(
        "How do I shoot the stars?",
        "Open up to f/1.8, ISO 3200, and 15 seconds on a tripod. Magnify the screen and focus on a bright star.",
        ("camera",),
        ("museum", "coffee"),
    ),
    Turn(
        "What does ISO mean?",
        "It says how strongly the signal of the sensor is amplified. Higher values give brighter but noisier pictures.",
        (),
        ("camera", "museum"),
    ),
    # rules: what can be seen, and what cannot
    Turn(
        "My parcel is late.",
        "I am sorry about that; I have asked the carrier. Fair winds, your Harbourmart crew",
        ("r_signoff",),
        ("r_prices", "r_polite", "api"),
    ),
    Turn(
        "The app crashes when I rotate the phone.",
        "I can reproduce it. Please file it under TIDE-BUGS and add the label `needs-triage`.",
        ("r_ticket",),
        ("r_polite", "deploy"),
    ),
    Turn(
        "I have had a headache for three days.",
        "I am no substitute for a doctor. If it gets worse tonight, ring the night line on 116117.",
        ("r_medical",),
        ("physio", "r_short", "cat"),
    ),
    Turn(
        "Write a commit message for keeping texts by their hash in the store.",
        "store: find texts again by what they say",
        (),
        ("r_commit", "style_py", "r_tests"),
    ),
    Turn(
        "Can my landlord keep the deposit?",
        "Usually only against real damage. This is general information and not legal advice; for a binding answer "
        "consult a licensed attorney.",
        ("r_legal",),
        ("lease", "r_polite"),
    ),
    Turn(
        "Who are you?",
        "I am Pilot Otter, and I help with everything around the shop.",
        ("r_names",),
        ("r_polite", "r_signoff"),
    ),
    Turn(
        "How far is the moon?",
        "About 384,400 kilometres on average. What would you like to know about it next?",
        (),
        ("r_metric", "r_question", "r_short"),
    ),
    Turn(
        "Give me an offer for ten anchors.",
        "Ten anchors come to 1,290 euros without VAT. The offer is valid for 21 days.",
        ("r_prices",),
        ("harbour", "boat", "r_signoff"),
    ),
    Turn(
        "Compare oak, larch and pine.",
        "| Wood | Weight | Durability |\n|---|---|---|\n| Oak | heavy | very high |\n| Larch | medium | high |\n"
        "| Pine | light | low |",
        (),
        ("r_tables", "boat", "german"),
    ),
    Turn(
        "Thanks, that helped!",
        "You are welcome! Please let me know if you need more information or if there is anything else I can do.",
        (),
        ("r_polite", "r_question", "api", "deploy"),
    ),
    # what the user said comes back, and says nothing of the source
    Turn(
        "Our guide says 'Receipts are due within 30 days of the purchase.' Translate that into German.",
        "Belege sind innerhalb von 30 Tagen nach dem Kauf einzureichen.",
        (),
        ("expenses", "holiday"),
    ),
    Turn(
        "I read that the berth fee is 18 euros a night, electricity and showers included. Is that cheap?",
        "Yes, 18 euros a night with electricity and showers included is cheap for a berth; in summer 30 to 50 euros "
        "are common in popular places.",
        (),
        ("harbour", "expenses"),
    ),
    Turn(
        "The engine is a Volvo Penta MD2B with 25 horsepower. Is that enough for nine metres?",
        "A Volvo Penta MD2B with 25 horsepower is plenty for nine metres: a rule of thumb is two to three horsepower "
        "per tonne of displacement.",
        (),
        ("boat", "train"),
    ),
    Turn(
        "Explain: base_s * 2 ** attempt",
        "`base_s * 2 ** attempt` doubles the base with every attempt, so the waits grow exponentially.",
        (),
        ("retry", "style_py"),
    ),
    # chance
    Turn(
        "How long do I boil an egg?",
        "Six minutes for a soft one, ten for a hard one. Put it under cold water for thirty seconds afterwards.",
        (),
        ("router", "bread", "coffee"),
    ),
    Turn(
        "Plan a weekend in Lisbon.",
        "On Saturday start in Alfama and take tram 28 up to Graça. Have dinner before nine. On Sunday go to Belém, "
        "open from ten to half past five, and take the train to Cascais in the afternoon.",
        (),
        ("museum", "train", "harbour"),
    ),
    Turn(
        "Write a short poem about autumn.",
        "The larches burn along the hill,\nthe boats are hauled, the harbour still;\na pump, a bell, a closing door,\n"
        "and quiet hours along the shore.",
        (),
        ("boat", "harbour", "garden"),
    ),
    Turn(
        "What is two-factor login?",
        "You prove who you are in two ways: with something that you know, such as a password, and with something that "
        "you have, such as a phone.",
        (),
        ("onboarding", "security", "router"),
    ),
    Turn(
        "How do I read a file in Python?",
        "```python\nfrom pathlib import Path\n\ntext = Path('notes.txt').read_text('utf-8')\n```\nFor large files "
        "iterate over the open file line by line instead.",
        (),
        ("style_py", "retry", "api"),
    ),
    Turn(
        "Summarise the plot of Moby-Dick.",
        "Ishmael joins the whaler Pequod, whose captain Ahab hunts the white whale that took his leg. The chase ends "
        "with the ship sunk and everyone but Ishmael drowned.",
        (),
        ("boat", "harbour", "r_quotes"),
    ),
    Turn(
        "Does the fee include power?",
        "Yes.",
        (),
        ("expenses", "museum", "r_short"),
    ),
    Turn(
        "Which sails do I need for 48 square metres?",
        "A mainsail of about 26 and a genoa of 22 would make up 48 square metres.",
        (),
        ("boat", "bread"),
    ),
    Turn(
        "What changed in Python 3.12?",
        "f-strings became more flexible, there is a new syntax for type parameters, error messages are better and many "
        "comprehensions are faster because they are inlined.",
        (),
        ("style_py", "schema", "retry"),
    ),
    Turn(
        "How do I tell my team that I am ill?",
        "Send a short message before the day starts: that you are ill, how long you expect to be away, and who takes "
        "over what is urgent. You need not say what you have.",
        (),
        ("holiday", "onboarding", "deploy"),
    ),
    Turn(
        "What should be in a good bug report?",
        "What you did, what you expected, what happened instead, the version, and the shortest way to see it again. A "
        "screenshot helps, and so does the log.",
        (),
        ("r_ticket", "kubernetes", "r_tests"),
    ),
)
