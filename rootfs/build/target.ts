/** The processors that the system is built for, and what differs between them. The machine that builds is always amd64. */
import { UsageError } from './failure.ts'

/** A processor, as Debian, Go and OCI name it. */
export type Arch = 'amd64' | 'arm64'

/** What the build needs to know of a processor. */
export interface Target {
  arch: Arch
  /** Target of Bun's compiler. */
  bun: string
  /** Baseline of the processor for Go. */
  go: Readonly<Record<string, string>>
  /** The C compiler on the machine that builds. */
  gcc: string
  /** Flags of the C compiler for programs without a C library. */
  cFlags: readonly string[]
  /** Name of libraries' folder and of tools (Debian multiarch tuple). */
  tuple: string
  /** The dynamic linker, where programs look for it (System V ABI). */
  linker: string
  /** Folders of /usr that have a short name at the root. */
  merged: readonly string[]
  /** Filter for its machine code in XZ (xz(1)). */
  xz: readonly string[]
  /** How UEFI names the processor (UEFI Specification 2.10, section 3.5.1.1). */
  efi: 'x64' | 'aa64'
  /** Parameters that select the consoles, the last of them becoming /dev/console. */
  consoles: readonly string[]
  /** What stands in file names of products and lock files that have no processor in their name for amd64. */
  suffix: string
}

/** Processors by their names. */
export const targets: Readonly<Record<Arch, Target>> = {
  amd64: {
    arch: 'amd64',
    bun: 'bun-linux-x64',
    go: { GOARCH: 'amd64', GOAMD64: 'v1' },
    gcc: 'gcc',
    cFlags: ['-fcf-protection=none'],
    tuple: 'x86_64-linux-gnu',
    linker: '/lib64/ld-linux-x86-64.so.2',
    merged: ['bin', 'sbin', 'lib', 'lib64'],
    xz: ['--x86'],
    efi: 'x64',
    consoles: ['console=tty0', 'console=ttyS0'],
    suffix: '',
  },
  arm64: {
    arch: 'arm64',
    bun: 'bun-linux-arm64',
    go: { GOARCH: 'arm64', GOARM64: 'v8.0' },
    gcc: 'aarch64-linux-gnu-gcc',
    cFlags: ['-mbranch-protection=none'],
    tuple: 'aarch64-linux-gnu',
    linker: '/lib/ld-linux-aarch64.so.1',
    merged: ['bin', 'sbin', 'lib'],
    xz: [],
    efi: 'aa64',
    consoles: ['console=ttyAMA0', 'console=tty0'],
    suffix: '-arm64',
  },
}

/** The folder of libraries in the image. */
export const libraryFolderOf = ({ tuple }: Target): string => `/usr/lib/${tuple}`

/** The target that a flag names; the machine's own without one. */
export function targetOf(requested = 'amd64'): Target {
  if (requested === 'amd64' || requested === 'arm64') return targets[requested]
  throw new UsageError(`--arch "${requested}": must be amd64 or arm64`)
}
