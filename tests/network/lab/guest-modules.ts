/** Gives the guest's kernel the modules that lie in its root. */
import { readdirSync, readFileSync } from 'node:fs'
import { check, cString, libc } from '../../../src/linux/libc.ts'

const c = libc({ init_module: { args: ['ptr', 'u64', 'ptr'], returns: 'i32' } })

/** In the order of their names. */
export function loadGuestModules(): void {
  for (const file of readdirSync('/modules').sort()) {
    const image = readFileSync(`/modules/${file}`)
    check('init_module', c().init_module(image, BigInt(image.length), cString('')), file)
  }
}
