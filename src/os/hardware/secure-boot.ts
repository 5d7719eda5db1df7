/** Secure Boot as the firmware reports it. */
import type { Kernel } from '../kernel.ts'

type Files = Pick<Kernel['files'], 'exists' | 'read'>

/** Variables of the firmware (UEFI 2.10, section 3.3): four bytes of attributes, then the value. */
const variable = (name: string) => `/sys/firmware/efi/efivars/${name}-8be4df61-93ca-11d2-aa0d-00e098032b8c`

const flag = (files: Files, name: string): boolean => {
  const path = variable(name)
  return files.exists(path) && files.read(path)[4] === 1
}

/** Whether the firmware starts signed programs only. In setup mode it has no keys yet and starts everything. */
export const isSecureBoot = (files: Files): boolean => flag(files, 'SecureBoot') && !flag(files, 'SetupMode')
