/** Upgrades of a machine with UEFI and systemd-boot: good, bad, and back. */
import { testUpgrades } from './upgrades.ts'

testUpgrades('uefi')
