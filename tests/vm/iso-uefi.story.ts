/** The ISO on a machine with UEFI: maintenance, installation, the start from the disk. */
import { testInstallation } from './installation.ts'

testInstallation('iso-uefi')
