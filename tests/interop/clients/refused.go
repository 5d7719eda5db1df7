package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"google.golang.org/grpc"
)

// refused connects in the ways that do not work; Omni decides by the text of the error what is wrong with a machine.
func refused(r *run) error {
	const limit = 10 * time.Second

	mine, err := identity(*talosconfig)
	if err != nil {
		return err
	}

	other, err := identity(*foreign)
	if err != nil {
		return err
	}

	for name, config := range map[string]*tls.Config{
		"no-certificate":      {InsecureSkipVerify: true},                               //nolint:gosec
		"no-certificate-1.2":  {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, //nolint:gosec
		"foreign-certificate": {RootCAs: mine.roots, Certificates: other.certificates},
		"foreign-authority":   {RootCAs: other.roots, Certificates: mine.certificates},
		"expired-server":      {RootCAs: mine.roots, Certificates: mine.certificates, Time: func() time.Time { return time.Now().AddDate(50, 0, 0) }},
	} {
		r.step(name, r.ctx, limit, func(ctx context.Context) (any, error) {
			c, err := client.New(ctx, client.WithTLSConfig(config), client.WithEndpoints(*endpoint))
			if err != nil {
				return nil, err
			}

			defer c.Close() //nolint:errcheck

			return version(ctx, c)
		})
	}

	r.step("foreign-config", r.ctx, limit, func(ctx context.Context) (any, error) {
		c, err := connect(ctx, *foreign, grpc.WithUserAgent("clients"))
		if err != nil {
			return nil, err
		}

		defer c.Close() //nolint:errcheck

		return version(ctx, c)
	})

	return nil
}

type credentials struct {
	roots        *x509.CertPool
	certificates []tls.Certificate
}

// identity reads the authority and the certificate of the current context of a client configuration.
func identity(file string) (*credentials, error) {
	config, err := clientconfig.Open(file)
	if err != nil {
		return nil, err
	}

	context, ok := config.Contexts[config.Context]
	if !ok {
		return nil, errors.New("client configuration has no context")
	}

	authority, err := base64.StdEncoding.DecodeString(context.CA)
	if err != nil {
		return nil, err
	}

	certificate, err := client.CertificateFromConfigContext(context)
	if err != nil {
		return nil, err
	}

	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("client configuration has no authority")
	}

	return &credentials{roots: roots, certificates: []tls.Certificate{*certificate}}, nil
}
