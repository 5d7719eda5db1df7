/** The ISO on a machine with UEFI: maintenance, installation, the start from the disk. */
import { tellInstallation } from './install-chapters.ts'

tellInstallation('iso-uefi')
