// Command pay makes a payment over gRPC and captures it, repeating calls with the same idempotency key.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/type/decimal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	paymentsv1 "example.com/payments-service/gen/payments/v1"
)

func main() {
	address, order := "127.0.0.1:8080", "go-1001"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if len(os.Args) > 2 {
		order = os.Args[2]
	}
	// Without TLS, for the sandbox.
	connection, err := grpc.Dial(address, grpc.WithInsecure())
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	payments := paymentsv1.NewPaymentServiceClient(connection)

	var payment *paymentsv1.Payment
	err = repeat(order, func(ctx context.Context) (err error) {
		payment, err = payments.CreatePayment(ctx, authorization(order))
		return err
	})
	if err != nil {
		log.Fatal(explain(err))
	}
	err = repeat(order+"-capture", func(ctx context.Context) (err error) {
		payment, err = payments.CapturePayment(ctx, &paymentsv1.CapturePaymentRequest{PaymentId: payment.Id})
		return err
	})
	if err != nil {
		log.Fatal(explain(err))
	}
	fmt.Println(payment.Status, payment.SubStatus, payment.Amount.Captured.Value)
}

func authorization(order string) *paymentsv1.CreatePaymentRequest {
	card := &paymentsv1.CardInput{
		Capture: proto.Bool(false),
		CardData: &paymentsv1.CardDataInput{
			Number:          "4111111111111111",
			ExpirationMonth: 12,
			ExpirationYear:  proto.Int32(30),
		},
	}
	return &paymentsv1.CreatePaymentRequest{
		AccountId:       "11111111-1111-4111-8111-111111111111",
		MerchantOrderId: order,
		Country:         "US",
		Amount: &paymentsv1.CreatePaymentRequest_Amount{
			Currency: "USD",
			Value:    &decimal.Decimal{Value: "55.75"},
		},
		PaymentMethod: &paymentsv1.PaymentMethodInput{
			Type:   "CARD",
			Detail: &paymentsv1.PaymentMethodDetailInput{Kind: &paymentsv1.PaymentMethodDetailInput_Card{Card: card}},
		},
	}
}

// repeat repeats a call until it gets a response. Every attempt has the same key, so nothing happens twice.
func repeat(key string, call func(context.Context) error) error {
	keys := metadata.Pairs(
		"public-api-key", "pk_sandbox_one",
		"private-secret-key", "sk_sandbox_one",
		"x-idempotency-key", key,
	)
	for pause := 250 * time.Millisecond; ; pause *= 2 {
		ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(context.Background(), keys), 30*time.Second)
		err := call(ctx)
		cancel()
		switch status.Code(err) {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown:
			if pause < 8*time.Second {
				time.Sleep(pause)
				continue
			}
		}
		return err
	}
}

// explain returns the service's reason and the faulty fields.
func explain(err error) string {
	text := status.Convert(err).Message()
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			text = detail.Reason + ": " + text
		case *errdetails.BadRequest:
			for _, fault := range detail.FieldViolations {
				text += fmt.Sprintf("\n  %s: %s", fault.Field, fault.Description)
			}
		}
	}
	return text
}
