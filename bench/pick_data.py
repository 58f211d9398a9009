"""What the choice is measured on: tools in the style of public MCP servers, rules, references, messages with what they
need, and as many other sources as wanted. All written for this bench; it lies in `bench/pick/`."""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any

from mcp import Client, StdioServerParameters
from recto.sources.source import Reference, Rule, Source, SourceId, Tool

FOLDER = Path(__file__).parent / "pick"
SORTS = ("words", "paraphrase", "long", "terse", "foreign", "nothing")
_TYPES = {"#": "integer", "!": "boolean", "[]": "array", "{}": "object"}


@dataclass(frozen=True, slots=True)
class Message:
    sort: str
    text: str
    right: frozenset[SourceId]
    harmless: frozenset[SourceId]
    """What may be chosen besides, and counts neither for nor against."""

    @property
    def is_held_out(self) -> bool:
        """Half of them, whatever else is in the file: calibration never sees these."""
        return hashlib.sha256(self.text.encode()).digest()[0] % 2 == 0


@cache
def sources() -> tuple[Source, ...]:
    return (*_tools(), *_written("rules.txt", Rule), *_written("references.txt", Reference))


@cache
def messages() -> tuple[Message, ...]:
    lines = (FOLDER / "questions.txt").read_text("utf-8").splitlines()
    known = {source.id for source in sources()}
    found = tuple(_message(line) for line in lines if line and not line.startswith("#"))
    if unknown := [str(id) for each in found for id in each.right | each.harmless if id not in known]:
        raise ValueError(f"questions.txt names sources that are not there: {', '.join(unknown)}")
    return found


PUBLISHED = Path(__file__).parents[1] / ".venv/node/node_modules/@modelcontextprotocol"
SERVERS = {"everything": ("stdio",), "filesystem": (str(FOLDER),)}
SERVED = "servers"


def served_sources() -> tuple[Source, ...]:
    """The tools that two public MCP servers list, and three texts; empty if the servers are not installed."""
    if not PUBLISHED.exists():
        return ()
    tools = [tool for name, arguments in SERVERS.items() for tool in asyncio.run(_listed(name, arguments))]
    return (*tools, *_written("server_references.txt", Reference))


async def _listed(name: str, arguments: Sequence[str]) -> list[Tool]:
    program = str(PUBLISHED / f"server-{name}" / "dist" / "index.js")
    async with Client(StdioServerParameters(command="node", args=[program, *arguments])) as client:
        listed = (await client.list_tools()).tools
    return [
        Tool(f"{name}__{each.name}", each.description or "", each.input_schema, "agent", name, each.name)
        for each in listed
    ]


def served_messages() -> tuple[Message, ...]:
    """Sixty messages over these, by somebody who knew only the lists."""
    lines = (FOLDER / "server_questions.txt").read_text("utf-8").splitlines()[1:]
    return tuple(
        _message(f"nothing | | {text}" if needs == "-" else f"{SERVED} | {needs} | {text}")
        for needs, text in (line.split(" | ", 1) for line in lines)
    )


def _message(line: str) -> Message:
    sort, needs, text = (part.strip() for part in line.split("|", 2))
    ids = needs.split()
    right = frozenset(_id(each) for each in ids if not each.startswith("?"))
    return Message(sort, text, right, frozenset(_id(each[1:]) for each in ids if each.startswith("?")))


def _id(typed: str) -> SourceId:
    return SourceId.parse(typed if ":" in typed else f"tool:{typed}")


def _tools() -> Iterator[Tool]:
    server = ""
    for line in (FOLDER / "tools.txt").read_text("utf-8").splitlines():
        if line.startswith("## "):
            server = line[3:].strip()
        elif line.strip():
            name, told, arguments = (part.strip() for part in line.split("|", 2))
            yield _tool(server, name, told, [part.strip() for part in arguments.split(";") if part.strip()])


def _tool(server: str, name: str, told: str, arguments: list[str]) -> Tool:
    properties: dict[str, Any] = {}
    for argument in arguments:
        key, _, said = (part.strip() for part in argument.partition(":"))
        sign = next((sign for sign in _TYPES if key.endswith(sign)), "")
        properties[key.removesuffix(sign)] = {"type": _TYPES.get(sign, "string"), "description": said}
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return Tool(f"{server}__{name}", told, schema, "agent", server, name)


def _written(file: str, kind: type[Rule] | type[Reference]) -> Iterator[Rule | Reference]:
    for block in (FOLDER / file).read_text("utf-8").split("=== ")[1:]:
        head, _, text = block.partition("\n")
        name, _, description = (part.strip() for part in head.partition("|"))
        yield kind(name, text.strip(), description, "agent")


# -- others: services that no message asks for

_SERVICES = """
zendesk: ticket, macro, satisfaction rating, help article, agent group, organization
shopify: product variant, storefront collection, discount code, fulfilment, gift card, theme
salesforce: opportunity, account record, campaign, territory, forecast quota, case
mailchimp: audience, newsletter campaign, segment, template, automation, landing page
datadog: monitor, service level objective, synthetic test, host map, metric tag, notebook
cloudflare: DNS record, firewall rule, worker script, page rule, certificate, tunnel
terraform: workspace, state version, variable set, policy check, run plan, module
auth0: tenant user, connection, role grant, client application, hook, brute force block
snowflake: warehouse, stage, stream, masking policy, resource monitor, share
bigquery: dataset, scheduled query, slot reservation, model, routine, row policy
airtable: base, record, view, interface, automation run, extension
zapier: zap, task history, connected account, webhook step, folder, version
okta: identity group, sign-on policy, device, authenticator, access request, event hook
pagerduty: escalation policy, on-call shift, service dependency, response play, incident note, status update
workday: worker profile, absence balance, pay slip, job requisition, benefit election, cost allocation
greenhouse: candidate, scorecard, offer letter, job post, interview kit, prospect pool
quickbooks: journal entry, vendor bill, chart of accounts, purchase order, tax code, bank rule
xero: bank transaction, credit note, fixed asset, payroll run, tracking category, quote
docusign: envelope, signing template, recipient, bulk send, seal, witness
intercom: conversation part, product tour, help center collection, ticket type, outbound banner, company tag
segment: event source, destination, tracking plan, audience sync, trait, warehouse connector
amplitude: cohort, funnel, experiment flag, chart, annotation, taxonomy
contentful: content type, entry, asset, locale, environment alias, release bundle
wordpress: blog post, media item, comment moderation, plugin, menu, widget
webflow: site, collection item, form submission, redirect, style class, publish queue
vercel: deployment alias, edge config, project domain, build hook, log drain, team member
heroku: dyno, add-on, config var, pipeline promotion, release phase, log session
jenkins: build job, pipeline stage, node executor, credential binding, artifact, queue item
circleci: orb, workflow approval, context variable, test split, runner, insight
elasticsearch: index template, shard allocation, ingest pipeline, snapshot policy, search alias, synonym set
redis: key space, stream group, sorted set, cluster slot, access list, slow log
kafka: topic, consumer group, partition, connector, schema subject, offset
rabbitmq: exchange, queue binding, virtual host, shovel, federation link, policy
vault: secret engine, lease, transit key, audit device, auth method, token role
consul: service entry, health check, intention, prepared query, key prefix, session lock
prometheus: alert rule, scrape target, recording rule, silence, exporter, time series
tableau: workbook, data source refresh, dashboard view, subscription, project permission, extract
looker: explore, look, derived table, schedule, content validation, model set
dbt: model run, source freshness, exposure, macro, seed, test result
fivetran: connector sync, destination schema, transformation, log event, group, certificate approval
hospital: patient admission, bed assignment, lab result, prescription, surgery slot, discharge letter
library: book loan, reservation, reader card, overdue fine, shelf mark, interlibrary request
warehouse: pallet, picking list, stock movement, bin location, cycle count, dock door
fleet: vehicle, driver shift, fuel card, inspection, route plan, toll charge
airline: seat assignment, baggage claim, boarding pass, fare rule, crew roster, gate change
hotel: room booking, housekeeping round, minibar charge, rate plan, guest preference, night audit
insurance: policy rider, damage claim, premium calculation, broker commission, risk survey, beneficiary
bank: standing order, card limit, loan application, exchange order, account statement, fraud case
university: course enrolment, exam grade, lecture hall, thesis topic, scholarship, transcript of records
museum: exhibit, loan agreement, conservation report, guided tour, ticket quota, provenance file
farm: field plot, herd record, irrigation plan, harvest batch, pesticide log, silo level
energy: meter reading, tariff, grid outage, solar inverter, charging station, load profile
telecom: phone line, SIM card, roaming pass, cell tower, number porting, voicemail box
cinema: screening, seat plan, trailer reel, concession order, film booking, projector
gym: membership, class booking, locker, trainer hour, body measurement, access gate
restaurant: table reservation, menu card, kitchen order, wine list, allergen sheet, tip pool
theatre: rehearsal, costume, stage plan, subscription series, prop list, lighting cue
court: docket, hearing, exhibit filing, subpoena, verdict, bail record
parking: parking space, permit, barrier, violation, tariff zone, occupancy count
recycling: collection route, container, sorting report, bulky waste request, weighing slip, depot
laboratory: sample, assay run, reagent lot, instrument calibration, cell line, freezer box
radio: broadcast slot, jingle, transmitter, listener survey, playlist rotation, interview tape
zoo: enclosure, feeding plan, veterinary visit, breeding record, visitor count, keeper shift
port: container berth, customs form, crane order, pilot booking, tide table, cargo manifest
optician: eye test, lens order, frame stock, prescription card, repair slip, warranty
school: timetable, report card, substitute lesson, class trip, canteen meal, detention
archive: finding aid, microfilm, donation, reading room visit, digitisation order, retention rule
"""
_VERBS = {
    "list": "List all {}s, with paging and filters.",
    "get": "Get one {} with all of its fields.",
    "create": "Create a new {}.",
    "update": "Update an existing {}; fields that are not given stay as they are.",
    "delete": "Delete a {} for good.",
    "search": "Search for a {} by words and date.",
    "export": "Export {}s as CSV.",
    "import": "Import {}s from a file and report what could not be read.",
    "archive": "Archive a {} so that it is no longer offered.",
    "assign": "Assign a {} to somebody.",
    "approve": "Approve or reject a {} that waits for a decision.",
    "history": "Get the history of changes to a {}.",
}
_EVERY_EIGHTH = 8


def _others() -> Iterator[Source]:
    """In a fixed, mixed order; every eighth is a reference."""
    lines = [line.partition(":") for line in _SERVICES.strip().splitlines()]
    things = [(service, thing.strip()) for service, _, named in lines for thing in named.split(",")]
    mixed = list(product(things, _VERBS))
    Random(6).shuffle(mixed)
    for number, ((service, thing), verb) in enumerate(mixed):
        yield (_other_tool if number % _EVERY_EIGHTH else _other_reference)(service, verb, thing)


def _other_tool(service: str, verb: str, thing: str) -> Source:
    own = f"{verb}_{thing.replace(' ', '_').replace('-', '_').lower()}"
    told = f"{_VERBS[verb].format(thing)} Part of {service}."
    return _tool(service, own, told, [f"id: Id of the {thing}", "limit#: At most so many"])


def _other_reference(service: str, verb: str, thing: str) -> Source:
    name = f"{service}-{verb}-{thing.replace(' ', '-').lower()}"
    text = f"How we {verb} a {thing}. {_VERBS[verb].format(thing)} Ask the owner of {service} before you do so."
    return Reference(name, text, f"{verb.capitalize()} a {thing} in {service}", "agent")


def filled(size: int) -> tuple[Source, ...]:
    """All of ours, and others up to `size`."""
    return (*sources(), *islice(_others(), max(0, size - len(sources()))))


def groups(size: int) -> tuple[tuple[Source, ...], ...]:
    """Ours in groups of a size, of all kinds."""
    mixed = list(sources())
    Random(7).shuffle(mixed)
    return tuple(tuple(mixed[start : start + size]) for start in range(0, len(mixed) - size // 2, size))
