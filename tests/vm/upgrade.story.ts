/** Upgrades of a machine with UEFI and systemd-boot: good, bad, and back. */
import { tellUpgrades } from './upgrade-chapters.ts'

tellUpgrades('uefi')
