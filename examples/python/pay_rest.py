"""Makes a payment over REST using only Python's standard library, repeating the call with the same idempotency key.

python3 examples/python/pay_rest.py [url] [order]
"""

import json
import sys
import time
import urllib.error
import urllib.request

RETRIED = {429, 500, 503}


def call(url, body, key):
    """Calls until it gets a response. Every attempt has the same key, so nothing happens twice."""
    headers = {
        "content-type": "application/json",
        "public-api-key": "pk_sandbox_one",
        "private-secret-key": "sk_sandbox_one",
        "x-idempotency-key": key,
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    pause = 0.25
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            in_progress = problem["code"] == "REQUEST_IN_PROGRESS"
            if (error.code not in RETRIED and not in_progress) or pause > 8:
                raise SystemExit(f"{problem['code']}: {problem['detail']}")
        except OSError:
            # No response: repeat the call to learn the outcome.
            if pause > 8:
                raise
        time.sleep(pause)
        pause *= 2


def main(url="http://127.0.0.1:8080", order="python-rest-1001"):
    card = {"number": "4111111111111111", "expiration_month": 12, "expiration_year": 30}
    payment = {
        "account_id": "11111111-1111-4111-8111-111111111111",
        "merchant_order_id": order,
        "country": "US",
        "amount": {"currency": "USD", "value": "55.75"},
        "payment_method": {"type": "CARD", "detail": {"card": {"card_data": card}}},
    }
    record = call(f"{url}/v1/payments", payment, order)
    print(record["status"], record["sub_status"], record["amount"]["value"])


main(*sys.argv[1:])
