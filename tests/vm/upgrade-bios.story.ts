/** Upgrades of a machine with a BIOS and GRUB: good, bad, and back. */
import { tellUpgrades } from './upgrade-chapters.ts'

tellUpgrades('bios')
