/** UEFI for virtual machines, as Debian, Fedora and Arch install it. */

import { copyFileSync, existsSync } from 'node:fs'
import type { Firmware } from './qemu-arguments.ts'

interface Place {
  code: string
  variables: string
}

const plain: readonly Place[] = [
  { code: '/usr/share/OVMF/OVMF_CODE_4M.fd', variables: '/usr/share/OVMF/OVMF_VARS_4M.fd' },
  { code: '/usr/share/edk2/ovmf/OVMF_CODE.fd', variables: '/usr/share/edk2/ovmf/OVMF_VARS.fd' },
  { code: '/usr/share/edk2/x64/OVMF_CODE.4m.fd', variables: '/usr/share/edk2/x64/OVMF_VARS.4m.fd' },
]

// The variables are the empty ones in both: no key is enrolled, so the machine is in setup mode.
const secureBoot: readonly Place[] = [
  { code: '/usr/share/OVMF/OVMF_CODE_4M.secboot.fd', variables: '/usr/share/OVMF/OVMF_VARS_4M.fd' },
  { code: '/usr/share/edk2/ovmf/OVMF_CODE.secboot.fd', variables: '/usr/share/edk2/ovmf/OVMF_VARS.fd' },
  { code: '/usr/share/edk2/x64/OVMF_CODE.secboot.4m.fd', variables: '/usr/share/edk2/x64/OVMF_VARS.4m.fd' },
]

/** Whether this host has a UEFI for virtual machines, with or without Secure Boot. */
export function hostFirmware(secure: boolean): Place | undefined {
  return (secure ? secureBoot : plain).find(({ code, variables }) => existsSync(code) && existsSync(variables))
}

/** A machine's UEFI; its variables are kept in a file of its own, which is made from the host's empty ones when it is not there. Throws when the host has no UEFI. */
export function machineFirmware(variables: string, secure = false): Firmware {
  const place = hostFirmware(secure)
  if (!place) throw new Error('there is no UEFI for virtual machines on this host: install the package "ovmf" (Debian) or "edk2-ovmf"')
  if (!existsSync(variables)) copyFileSync(place.variables, variables)
  return { kind: 'uefi', code: place.code, variables, secure }
}
