package model

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// ErrTooLong is the cause of an error for a conversation that does not fit into
// the window of its model, or into what its server takes.
var ErrTooLong = errors.New("the conversation is too long for the model")

// explain finds out what a refusal is about where status and type do not tell.
// Providers have no common word for it, so their texts are searched.
func (e *APIError) explain() {
	message := strings.ToLower(strings.ReplaceAll(e.Message, "`", ""))
	switch {
	case tooLong(e.Status, e.Type, message):
		e.Err, e.Transient = ErrTooLong, false
		e.Remedy = "begin a new session, or choose a model with a larger window with --model"
	case noTools(message):
		e.Transient = false
		e.Remedy = "agents work by calling tools: choose a model that can with --model, or start the server so that it passes them on"
	}
}

// tooLong reports whether a refusal says that the conversation is too long.
func tooLong(status int, kind, message string) bool {
	switch {
	case status == http.StatusTooManyRequests:
		return false // too much for this minute
	case status == http.StatusRequestEntityTooLarge:
		return true
	}
	if slices.Contains([]string{"context_length_exceeded", "exceed_context_size_error", "request_too_large", "model_context_window_exceeded"}, kind) {
		return true
	}
	return slices.ContainsFunc([]string{
		"prompt is too long",                // Anthropic
		"exceed context limit",              // Anthropic, prompt and longest reply together
		"input is too long",                 // Bedrock
		"maximum context length",            // OpenAI, vLLM, OpenRouter, DeepSeek
		"context length exceeded",           // servers of old
		"exceeds the context window",        // OpenAI
		"context window exceed",             // MiniMax
		"exceeds the available context",     // llama.cpp
		"greater than the context length",   // LM Studio
		"exceeds the maximum number of tok", // Gemini
		"maximum prompt length",             // xAI, Z.ai
		"exceeded model token limit",        // Kimi
		"reduce the length of the messages", // Groq
		"too large for model with",          // Mistral
	}, func(phrase string) bool { return strings.Contains(message, phrase) })
}

// noTools reports whether a refusal says that the model or the server cannot do
// with tools.
func noTools(message string) bool {
	if !strings.Contains(message, "tool") && !strings.Contains(message, "function call") {
		return false
	}
	return slices.ContainsFunc([]string{
		"not support tool", "not support function", "that support tool", // Ollama; OpenRouter
		"tools is not supported", "tools are not supported", "tool calling is not supported", "tool use is not supported",
		"enable-auto-tool-choice", "requires --jinja", // vLLM; llama.cpp
	}, func(phrase string) bool { return strings.Contains(message, phrase) })
}
