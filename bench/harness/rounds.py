"""Rounds: every client once in each, in an order that turns, so that a noisy minute hits all alike."""

from .measure import Failed, run_checked

# What the hosts answer in the check before the figures.
ANSWER = "sshoal-bench-answer"


def check_answers(client, hosts, window):
    """Every host must answer exactly once. A client that fails here is not measured."""
    command = f"echo {ANSWER}"
    sample = run_checked(client.argv(hosts, window, command), client.environment(hosts))
    # Clients prefix lines, or say beside them which host they are of; the answer ends the line in all of them.
    answers = sum(line.endswith(ANSWER) for line in sample.stdout.splitlines())
    if answers != len(hosts):
        raise Failed(f"{client.label}: {answers} answers from {len(hosts)} hosts\n{sample.stderr[-2000:]}")


def usable(clients, hosts, window, report):
    """The clients that give right answers; the others are named, never silently left out."""
    good = []
    for client in clients:
        try:
            check_answers(client, hosts, window)
            good.append(client)
        except Failed as error:
            report(f"NOT MEASURED: {client.label}: {error}")
    return good


def interleaved(clients, rounds, measure):
    """Calls `measure(client, round)` for all, and returns the rows it gave."""
    rows = []
    for number in range(rounds):
        turn = number % len(clients) if clients else 0
        for client in clients[turn:] + clients[:turn]:
            rows.append({"client": client.name, "kex": client.kex, "round": number, **measure(client, number)})
    return rows
