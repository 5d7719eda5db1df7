/** Upgrades of a machine with a BIOS and GRUB: good, bad, and back. */
import { testUpgrades } from './upgrades.ts'

testUpgrades('bios')
