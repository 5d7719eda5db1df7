import { check, fromCString, libc, quoted } from '../libc.ts'

const c = libc({
  sethostname: { args: ['ptr', 'u64'], returns: 'i32' },
  setdomainname: { args: ['ptr', 'u64'], returns: 'i32' },
  uname: { args: ['ptr'], returns: 'i32' },
})

/** The result of uname(2). */
export interface Uname {
  sysname: string
  nodename: string
  release: string
  version: string
  machine: string
  domainname: string
}

const field = 65 // _UTSNAME_LENGTH

/** uname(2). */
export function uname(): Uname {
  const bytes = Buffer.alloc(field * 6)
  check('uname', c().uname(bytes))
  const at = (index: number) => fromCString(bytes.subarray(index * field, (index + 1) * field))
  return { sysname: at(0), nodename: at(1), release: at(2), version: at(3), machine: at(4), domainname: at(5) }
}

/** gethostname(2): the node name of this uts namespace. */
export function gethostname(): string {
  return uname().nodename
}

/** sethostname(2). */
export function sethostname(name: string): void {
  const bytes = Buffer.from(name)
  check('sethostname', c().sethostname(bytes, bytes.length), quoted(name))
}

/** setdomainname(2). */
export function setdomainname(name: string): void {
  const bytes = Buffer.from(name)
  check('setdomainname', c().setdomainname(bytes, bytes.length), quoted(name))
}
