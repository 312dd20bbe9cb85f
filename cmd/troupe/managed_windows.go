package main

// managedSettings is the settings file of the machine's owner.
const managedSettings = `C:\Program Files\troupe\managed-settings.json`
