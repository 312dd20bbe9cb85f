//go:build unix && !darwin

package main

// managedSettings is the settings file of the machine's owner.
const managedSettings = "/etc/troupe/managed-settings.json"
