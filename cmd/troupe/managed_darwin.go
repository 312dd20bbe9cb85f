package main

// managedSettings is the settings file of the machine's owner.
const managedSettings = "/Library/Application Support/troupe/managed-settings.json"
