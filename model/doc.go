// Package model is what every provider of language models shares: names and
// endpoints, the catalogue of windows and prices, errors with a remedy, and the
// Models around a Model that retry and that keep to a rate limit.
//
// The way of a request: [Catalogue.Parse] makes a [Name] of what the user
// wrote, [Catalogue.Endpoint] finds out where to send it and with which key,
// package anthropic or openai makes a [troupe.Model] of the endpoint, a
// [Governor] slows all agents of the account when one of them is told to slow
// down, and [Retry] sends again what may succeed later:
//
//	m := model.Retry(governor.Wrap(anthropic.New(options)), policy)
//
// All providers are reached through one client, that of [Network]: it knows the
// user's proxies and authorities. They speak through an [Exchange], which
// watches the HTTP side of one request: silence, redirects, pages that are no
// answer, errors. What a refusal is about it finds out, too: [ErrTooLong].
//
// Nothing here reads the environment or the clock: who builds a Model passes
// them in.
package model
