"""Makes a payment over gRPC and captures it, repeating calls with the same idempotency key.

python3 examples/python/pay.py [address] [order]
"""

import pathlib
import sys
import time

import grpc

GEN = pathlib.Path(__file__).parent / "gen"
sys.path.insert(0, str(GEN))
# The generated google.api and google.type extend the google package that protobuf installs.
import google  # noqa: E402

google.__path__.append(str(GEN / "google"))

from google.type import decimal_pb2  # noqa: E402
from payments.v1 import payment_method_pb2, payment_pb2, payment_service_pb2, payment_service_pb2_grpc  # noqa: E402

RETRIED = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}


def repeat(call, request, key):
    """Calls until it gets a response. Every attempt has the same key, so nothing happens twice."""
    keys = (
        ("public-api-key", "pk_sandbox_one"),
        ("private-secret-key", "sk_sandbox_one"),
        ("x-idempotency-key", key),
    )
    pause = 0.25
    while True:
        try:
            return call(request, metadata=keys, timeout=30)
        except grpc.RpcError as error:
            if error.code() not in RETRIED or pause > 8:
                raise
            time.sleep(pause)
            pause *= 2


def authorization(order):
    card = payment_method_pb2.CardInput(
        capture=False,
        card_data=payment_method_pb2.CardDataInput(
            number="4111111111111111", expiration_month=12, expiration_year=30
        ),
    )
    return payment_service_pb2.CreatePaymentRequest(
        account_id="11111111-1111-4111-8111-111111111111",
        merchant_order_id=order,
        country="US",
        amount=payment_service_pb2.CreatePaymentRequest.Amount(
            currency="USD", value=decimal_pb2.Decimal(value="55.75")
        ),
        payment_method=payment_method_pb2.PaymentMethodInput(
            type="CARD", detail=payment_method_pb2.PaymentMethodDetailInput(card=card)
        ),
    )


def main(address="127.0.0.1:8080", order="python-1001"):
    # Without TLS, for the sandbox.
    with grpc.insecure_channel(address) as channel:
        payments = payment_service_pb2_grpc.PaymentServiceStub(channel)
        payment = repeat(payments.CreatePayment, authorization(order), order)
        capture = payment_service_pb2.CapturePaymentRequest(payment_id=payment.id)
        payment = repeat(payments.CapturePayment, capture, f"{order}-capture")
        status = payment_pb2.Payment.Status.Name(payment.status)
        sub_status = payment_pb2.Payment.SubStatus.Value.Name(payment.sub_status)
        print(status, sub_status, payment.amount.captured.value)


main(*sys.argv[1:])
