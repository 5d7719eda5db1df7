/**
 * Who may import whom. Between rooms only what runs counts: the scanner erases imports of types. Between areas of the system types count
 * as well. A room is a folder of src/; the os areas have drawers, which are alike in every area.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { Glob } from 'bun'

const source = join(import.meta.dir, '../src')
const files = [...new Glob('**/*.ts').scanSync(source)].filter((path) => !path.endsWith('.d.ts')).sort()

/** What the drawers that act (not the portable ones) may open. */
const acting = [
  'wire',
  'cosi',
  'document',
  'pki',
  'oci',
  'kube',
  'supervise',
  'rpc',
  'rpc/client',
  'os',
  'os/resource-types',
  'os/portable',
  'os/own',
]

/** Room or drawer → those it may import besides itself; `timing` is open to all but `wire`, which is pure. */
const law: Record<string, string[]> = {
  timing: [],
  linux: ['wire'],
  wire: [],
  cosi: ['wire'],
  document: ['wire'],
  oci: ['wire'],
  pki: ['wire', 'cosi', 'document'],
  rpc: ['wire', 'cosi', 'document', 'proto'],
  'rpc/client': ['wire', 'cosi', 'document', 'rpc'],
  'rpc/server': ['wire', 'cosi', 'document', 'rpc'],
  kube: ['wire', 'document', 'pki'],
  supervise: ['wire', 'cosi', 'rpc', 'rpc/client'],
  os: ['wire', 'cosi', 'document'],
  'os/resource-types': ['wire', 'cosi', 'document', 'pki', 'os'],
  'os/portable': ['wire', 'cosi', 'document', 'pki', 'kube', 'rpc', 'os', 'os/resource-types'],
  'os/own': acting,
  'os/controllers': acting,
  'os/services': acting,
  'os/api': [...acting, 'rpc/server'],
  'os/contents': [...acting, 'os/controllers', 'os/services', 'os/api'],
  'programs/init': [
    'linux',
    'wire',
    'cosi',
    'supervise',
    'rpc',
    'rpc/client',
    'rpc/server',
    'os',
    'os/portable',
    'os/own',
    'os/services',
    'os/contents',
  ],
  'programs/apid': ['wire', 'cosi', 'rpc', 'rpc/client', 'rpc/server', 'pki', 'os/resource-types'],
  'programs/trustd': ['wire', 'cosi', 'rpc', 'rpc/client', 'rpc/server', 'pki', 'os/resource-types', 'programs/kms'],
  'programs/metricsd': ['wire', 'cosi', 'rpc', 'rpc/client', 'pki'],
  'programs/exec': ['linux', 'wire'],
  'programs/wireguard': ['linux', 'wire'],
  'programs/etcd-verify': ['wire'],
  'programs/node-supervisor': ['linux', 'wire', 'cosi'],
  'programs/discovery': ['wire', 'cosi', 'rpc', 'rpc/server', 'programs/node-supervisor'],
  'programs/factory': ['wire', 'cosi', 'document', 'oci'],
  'programs/kms': ['wire', 'cosi', 'rpc', 'rpc/server'],
  'programs/dashboard': ['programs/talosctl'],
  'programs/talosctl': [
    'wire',
    'cosi',
    'document',
    'rpc',
    'rpc/client',
    'pki',
    'kube',
    'oci',
    'os',
    'os/resource-types',
    'os/portable',
    'programs/factory',
    'programs/kms',
    'programs/talosctl/cluster',
  ],
  'programs/talosctl/cluster': [
    'linux',
    'wire',
    'cosi',
    'document',
    'rpc',
    'rpc/client',
    'pki',
    'kube',
    'oci',
    'os',
    'os/resource-types',
    'os/portable',
    'programs/node-supervisor',
    'programs/talosctl',
  ],
}

/** What talosctl uses of an area beyond its resource types. It must run where there is no node. */
const portable = [
  'os/config/',
  'os/cluster/health/',
  'os/k8s/images.ts',
  'os/etcd/majority.ts',
  'os/runtime/extensions/service-spec.ts',
  // What a machine reads of its platform, and the notation it becomes.
  'os/network/platform/',
  'os/network/link/canonical.ts',
  'os/network/link/declared.ts',
  'os/network/declared-specs.ts',
  'os/network/full-name.ts',
]

function roomOf(path: string): string {
  if (path.startsWith('..')) return 'proto' // texts of the package itself
  const [room = '', second = '', third = ''] = path.split('/')
  if (path === 'main.ts' || path === 'program-table.ts' || path === 'release.ts') return path
  if (room === 'rpc') return second === 'client' || second === 'server' ? `rpc/${second}` : 'rpc'
  if (room === 'programs') return path.startsWith('programs/talosctl/cluster/') ? 'programs/talosctl/cluster' : `programs/${second}`
  if (room !== 'os' || third === '') return room
  if (third === 'documents' || third === 'resources' || third === 'resource-types.ts') return 'os/resource-types'
  if (third === 'controllers' || third === 'services' || third === 'api') return `os/${third}`
  if (third === `${second}.ts`) return 'os/contents'
  return portable.some((prefix) => path.startsWith(prefix)) ? 'os/portable' : 'os/own'
}

interface Import {
  from: string
  to: string
  lazy: boolean
}

const transpiler = new Bun.Transpiler({ loader: 'ts' })
const imports: Import[] = files.flatMap((from) =>
  transpiler.scanImports(readFileSync(join(source, from), 'utf8')).map(({ path, kind }) => ({
    from,
    to: path.startsWith('.') ? normalize(join(dirname(from), path)) : path,
    lazy: kind === 'dynamic-import',
  })),
)
const present = new Set(files)
const inside = imports.filter(({ to }) => present.has(to) || to.startsWith('..'))
const outside = imports.filter((entry) => !inside.includes(entry))

const arrows = (entries: readonly Pick<Import, 'from' | 'to'>[]) => entries.map(({ from, to }) => `${from} → ${to}`)

describe('rooms', () => {
  test('are all known', () => {
    const rooms = new Set(files.map(roomOf))
    for (const room of ['main.ts', 'program-table.ts', 'release.ts']) rooms.delete(room)
    expect([...rooms].filter((room) => !(room in law))).toEqual([])
  })

  test('import only whom they may', () => {
    const broken = inside.filter(({ from, to }) => {
      const room = roomOf(from)
      if (room === 'main.ts' || room === 'program-table.ts' || room === 'release.ts' || to === 'release.ts' || to === '../package.json')
        return false
      if (roomOf(to) === 'timing' && room !== 'wire') return false
      return roomOf(to) !== room && !law[room]?.includes(roomOf(to))
    })
    expect(arrows(broken)).toEqual([])
  })

  test('of programs are opened by their table lazily, and by main.ts through it', () => {
    const opened = inside.filter(({ from }) => from === 'main.ts' || from === 'program-table.ts')
    const broken = opened.filter(({ from, to, lazy }) =>
      from === 'main.ts' ? to !== 'program-table.ts' : !(lazy && to.startsWith('programs/')),
    )
    expect(arrows(broken)).toEqual([])
  })

  test('that need Linux are opened by talosctl lazily', () => {
    const broken = inside.filter(
      ({ from, to, lazy }) => roomOf(from) === 'programs/talosctl' && roomOf(to) === 'programs/talosctl/cluster' && !lazy,
    )
    const reach = broken.filter(({ to }) => reaches(to, 'linux'))
    expect(arrows(reach)).toEqual([])
  })
})

/** The areas from the bottom to the top: an area uses those before it. Resources and documents are for all. */
const order = [
  'config',
  'hardware',
  'files',
  'block',
  'network',
  'time',
  'cri',
  'security',
  'runtime',
  'secrets',
  'k8s',
  'etcd',
  'kubespan',
  'cluster',
  'siderolink',
  'telemetry',
  'lifecycle',
  'diagnosis',
]

describe('areas', () => {
  const areaOf = (path: string): string | undefined => /^os\/([^/]+)\//.exec(path)?.[1]
  /** Imports, re-exports and `import('…')`, with those of types, which the scanner of the runtime leaves out. */
  const named = files.flatMap((from) =>
    [...readFileSync(join(source, from), 'utf8').matchAll(/\b(?:from |import ?\(?\s*)'(\.[^']+)'/g)].map(([, path = '']) => ({
      from,
      to: normalize(join(dirname(from), path)),
    })),
  )
  const inAreas = named.flatMap(({ from, to }) => {
    const [user, owner] = [areaOf(from), areaOf(to)]
    return user && owner ? [{ from, to, user, owner }] : []
  })
  const across = inAreas.filter(({ to, user, owner }) => user !== owner && roomOf(to) !== 'os/resource-types')
  const publicFile = (area: string) => `os/${area}/public.ts`

  test('are judged by all imports that the scanner sees, and by types', () => {
    const seen = new Set(arrows(named))
    expect(arrows(inside).filter((arrow) => !seen.has(arrow))).toEqual([])
    expect(seen).toContain('os/area.ts → os/lifecycle/sequencer.ts')
    expect(seen).toContain('os/kernel.ts → linux/fs/files.ts')
  })

  test('are all in the order', () => {
    expect([...new Set(files.flatMap((path) => areaOf(path) ?? []))].sort()).toEqual([...order].sort())
  })

  test('use of each other resources, documents and what public.ts offers', () => {
    expect(arrows(across.filter(({ to, owner }) => to !== publicFile(owner)))).toEqual([])
  })

  test('use only areas below them', () => {
    expect(arrows(across.filter(({ user, owner }) => order.indexOf(user) < order.indexOf(owner)))).toEqual([])
  })

  test('offer names of their own files, each with the reason, and do not import their own public.ts', () => {
    const entry = /^\/\/ \S.*\nexport (?:type )?\{[^}]*\} from '\.\/[^']*'\n/gm
    const offering = order.map(publicFile).filter((path) => present.has(path))
    const other = offering.filter((path) => {
      const [head, ...rest] = readFileSync(join(source, path), 'utf8').replace(entry, '').split('\n')
      return !head?.startsWith('/** ') || rest.join('') !== ''
    })
    expect(other).toEqual([])
    expect(arrows(inAreas.filter(({ to, user }) => to === publicFile(user)))).toEqual([])
  })

  test('offer nothing that no other area uses', () => {
    const namesIn = (path: string, pattern: RegExp) =>
      [...readFileSync(join(source, path), 'utf8').matchAll(pattern)].flatMap(([, names = '']) =>
        names.split(',').map((name) => name.trim().replace(/^type /, '')),
      )
    const unused = order.flatMap((area) => {
      if (!present.has(publicFile(area))) return []
      const used = new Set(
        across
          .filter(({ owner }) => owner === area)
          .flatMap(({ from }) => namesIn(from, new RegExp(`^import (?:type )?\\{([^}]*)\\} from '[./]*/${area}/public\\.ts'`, 'gm'))),
      )
      const offered = namesIn(publicFile(area), /^export (?:type )?\{([^}]*)\} from/gm)
      return offered.filter((name) => name !== '' && !used.has(name)).map((name) => `${area}: ${name}`)
    })
    expect(unused).toEqual([])
  })
})

function reaches(start: string, room: string): boolean {
  const seen = new Set<string>()
  const waiting = [start]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    if (seen.has(at)) continue
    seen.add(at)
    if (roomOf(at) === room) return true
    waiting.push(...inside.filter(({ from, lazy }) => from === at && !lazy).map(({ to }) => to))
  }
  return false
}

/** Interfaces to the outside that only some rooms use. */
const outlets: Record<string, (path: string) => boolean> = {
  'bun:ffi': (path) => path.startsWith('linux/'),
  'node:child_process': (path) => /^(linux|programs\/(node-supervisor|talosctl))\//.test(path),
  'node:fs': (path) => /^(linux|programs|rpc\/server)\//.test(path),
  'node:fs/promises': (path) => /^(linux|programs)\//.test(path),
  'node:net': (path) => /^(linux|rpc|programs)\//.test(path),
  'node:dgram': (path) => /^(linux|programs)\//.test(path),
  'node:tls': (path) => /^(rpc|kube|programs)\//.test(path),
  'node:http': (path) => /^(rpc|kube|programs)\//.test(path),
  'node:http2': (path) => /^(rpc|kube|programs)\//.test(path),
  'node:https': (path) => /^(rpc|kube|programs)\//.test(path),
}

/** Rooms' one exception each, and why. */
const exceptions: Record<string, string[]> = {
  'os/network/dns/listener.ts': ['node:net'], // the host DNS is a socket that answers
  'rpc/http2/acceptor.ts': ['node:fs'], // writes an alert beneath TLS, which has no call for it
  'os/network/dns/upstream.ts': ['node:net', 'node:dgram'], // and others that ask
  'os/network/platform/privileged-port.ts': ['node:http'], // chooses a source port, which fetch cannot
  'os/config/sources/tftp.ts': ['node:net', 'node:dgram'], // a client of a protocol, as the one above
}

/** Packages and the rooms that use them. */
const packages: Record<string, RegExp> = {
  valibot: /./,
  yaml: /^(document|programs\/talosctl)\//,
  protobufjs: /^rpc\//,
  'protobufjs/minimal': /^rpc\//,
  'protobufjs/light': /^rpc\//,
  commander: /^programs\/talosctl\//,
  '@marcbachmann/cel-js': /^document\/cel\//,
  '@noble/ciphers': /^wire\/wireguard\//,
  '@noble/ciphers/chacha.js': /^wire\/wireguard\//,
  '@noble/curves': /^(pki|wire|os|programs)\//,
  '@noble/hashes': /^(pki|wire|os|programs)\//,
  '@sigstore/bundle': /^os\/security\/signatures\//,
  '@sigstore/protobuf-specs': /^os\/security\/signatures\//,
  '@sigstore/verify': /^os\/security\/signatures\//,
}

/**
 * What runs in PID 1 reads a machine configuration in src/document and nowhere else: a second reader with other rules (merge
 * keys, numbers, aliases) would use something other than what was validated. These write YAML, look at its nodes, or read
 * small files of their own.
 */
const yamlExceptions: Record<string, string> = {
  'rpc/resource-yaml.ts': 'writes specs of resources',
  'kube/kubeconfig.ts': 'kubeconfig files',
  'kube/object.ts': 'manifests for Kubernetes',
  'kube/yaml.ts': 'writes the configurations of the kubelet and the control plane',
  'os/config/identify.ts': 'looks at nodes that src/document parsed',
  'os/config/generate/secrets.ts': 'looks at nodes that src/document parsed',
  'os/config/generate/explain.ts': 'looks at nodes that src/document parsed',
  'os/config/generate/yaml.ts': 'writes configurations',
  'os/network/controllers/platform.ts': 'writes the network of a platform to STATE',
  'os/network/platform/platform-config.ts': "a platform's network",
  'os/secrets/controllers/encryption-salt.ts': 'the salt on STATE',
  'os/runtime/controllers/extension-status.ts': 'the list of extensions of the image',
  'os/runtime/extensions/service-spec.ts': 'specifications of services, part of the image',
  'os/cluster/controllers/identity.ts': 'the identity on STATE',
  'os/kubespan/controllers/identity.ts': 'the identity on STATE',
}

describe('the outside', () => {
  test('is reached through the rooms that are responsible for it', () => {
    const broken = outside.filter(({ from, to }) => {
      const outlet = outlets[to]
      return outlet !== undefined && !outlet(from) && !exceptions[from]?.includes(to)
    })
    expect(arrows(broken)).toEqual([])
  })

  test('offers only the packages we chose, where they belong', () => {
    const broken = outside.filter(({ from, to }) => {
      if (/^(node:|bun:|bun$)/.test(to) || /\.(txt|css)$/.test(to) || to.endsWith('/page/script.js')) return false
      const name = Object.keys(packages).find((known) => to === known || to.startsWith(`${known}/`))
      return name === undefined || !(packages[name]?.test(from) || (name === 'yaml' && yamlExceptions[from]))
    })
    expect(arrows(broken)).toEqual([])
  })
})

/** Where "any" stands for a type that TypeScript cannot name otherwise; the reason is beside each. */
const untyped = ['cosi/controller.ts', 'cosi/resource.ts', 'document/kind.ts']

describe('types', () => {
  test('are "any" only where a reason is given', () => {
    const code = (path: string) => readFileSync(join(source, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
    const broken = files.filter((path) => /(?:[:=<,]|\bas) ?any\b/.test(code(path).replace(/'[^'\n]*'/g, "''")))
    expect(broken).toEqual(untyped)
  })

  test('of the operating system are never "Record<string, any>": a misspelt field must not compile', () => {
    const broken = files.filter((path) => path.startsWith('os/') && /Record<string,\s*any>/.test(readFileSync(join(source, path), 'utf8')))
    expect(broken).toEqual([])
  })
})

describe('files', () => {
  const roots = ['src', 'tests', 'rootfs', 'bench', 'proto'].map((folder) => join(import.meta.dir, '..', folder))
  const all = roots.flatMap((root) => {
    try {
      return [...new Glob('**/*.ts').scanSync(root)]
        .filter((path) => !path.includes('node_modules/'))
        .map((path) => join(basename(root), path))
    } catch {
      return [] // a folder that is not there yet
    }
  })

  test('are named in kebab-case after what they hold', () => {
    const well = /^[a-z0-9]+(-[a-z0-9]+)*(\.(test|sandbox|story))?(\.d)?\.ts$/
    expect(all.filter((path) => !well.test(basename(path)))).toEqual([])
  })

  test('are not drawers for everything', () => {
    const words = (path: string) => basename(path).replace(/\..*$/, '').replace('controller-manager', '').split('-')
    const vague = new Set(['util', 'utils', 'common', 'helper', 'helpers', 'manager', 'misc', 'index', 'lib'])
    expect(all.filter((path) => words(path).some((word) => vague.has(word)))).toEqual([])
  })

  /** Files of more than 300 lines, and why each is one idea. */
  const long: Record<string, string> = {
    'src/linux/fs/files.ts': 'the file system calls of the kernel, which the areas receive as one object',
    'src/rpc/http2/session.ts': 'the state machine of a connection, of which every frame may change every part',
  }
  const lineLimit = 300
  const capped = all.filter((path) => /^(src|rootfs|bench|proto|tests\/support)\//.test(path) && !path.endsWith('.d.ts')).sort()

  test(`hold at most ${lineLimit} lines, unless they are generated`, () => {
    const over = capped.filter((path) => {
      const text = readFileSync(join(source, '..', path), 'utf8')
      return text.split('\n').length - 1 > lineLimit && !text.startsWith('// Generated by ')
    })
    expect(over).toEqual(Object.keys(long))
  })

  test('have no default export and pass nothing on, except what an area offers to the others', () => {
    const passing = files.filter((path) => !/^os\/[^/]+\/public\.ts$/.test(path))
    const broken = passing.filter((path) =>
      /^export (?:default\b|(?:type )?(?:\*|\{[^}]*\} from\b))/m.test(readFileSync(join(source, path), 'utf8')),
    )
    expect(broken).toEqual([])
  })
})

describe('folders', () => {
  const limit = 25
  const repository = join(import.meta.dir, '..')

  test(`hold at most ${limit} files`, () => {
    const count = new Map<string, number>()
    for (const root of ['src', 'tests', 'rootfs', 'bench'])
      for (const file of new Glob(`${root}/**/*`).scanSync({ cwd: repository, dot: true }))
        if (!/\bnode_modules\/|\.log$/.test(file)) count.set(dirname(file), (count.get(dirname(file)) ?? 0) + 1)
    expect(count.size).toBeGreaterThan(200)
    const over = [...count].filter(([, files]) => files > limit).map(([folder]) => folder)
    expect(over).toEqual([])
  })
})

/** The code without comments and without what stands in quotes, line by line. */
const codeOf = (path: string): string[] =>
  readFileSync(join(source, path), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .split('\n')
    .map((line) => line.replace(/'(?:[^'\\]|\\.)*'/g, "''").replace(/(^|\s)\/\/.*$/, ''))

describe('the machine configuration', () => {
  test('is written by ConfigState alone, on disk and in its resources', () => {
    const writes = /\.(put|create|update|destroy|teardown)\(MachineConfig\b|(exclusive|shared)\(MachineConfig\b/
    const paths = /\b(keepConfig|writeTrial|removeTrial)\(|remove\((statePath|previousStatePath|trialPath)\b/
    const writers = files.filter((path) => codeOf(path).some((line) => writes.test(line) || paths.test(line)))
    expect(writers).toEqual([
      'os/config/apply/dry-run.ts', // in a store of its own
      'os/config/config-state.ts',
      'os/config/keep.ts', // defines what config-state.ts calls
      'os/config/trial/marker.ts', // the same
    ])
  })

  test('has its places on STATE named once', () => {
    const text = (path: string) => readFileSync(join(source, path), 'utf8')
    const names = files.filter((path) => /\/system\/state\/config|\bstateFolder\}\/config/.test(text(path)))
    expect(names).toEqual(['os/config/history/history.ts', 'os/config/keep.ts', 'os/config/trial/marker.ts'])
  })

  /** Where the runtime's YAML is used, and for what; a configuration is read by src/document alone. */
  const otherYaml: Record<string, string> = {
    'os/cluster/api/health-check.ts': 'specs of resources as the API has them, never the configuration',
    'programs/talosctl/cgroups/columns.ts': "the user's file of columns",
    'programs/talosctl/cluster/node-api.ts': "a machine's status as the API has it",
    'programs/talosctl/commands/diagnostics/events.ts': 'prints',
    'programs/talosctl/machine-config/machine-config.ts': 'the resource as the API has it, whose spec is one string',
    'programs/talosctl/output/output.ts': 'prints',
    'programs/talosctl/resource/definition.ts': 'specs of resources as the API has them',
    'programs/talosctl/support/kubernetes.ts': 'prints',
    'programs/talosctl/talosconfig/talosconfig.ts': 'the client configuration',
    'rpc/client/follow.ts': 'specs of resources as the API has them, of kinds that have no message',
  }

  test("is never read by the runtime's YAML, which has other rules", () => {
    expect(files.filter((path) => codeOf(path).some((line) => /\bYAML\b/.test(line) && /\bBun\b/.test(line)))).toEqual(
      Object.keys(otherYaml),
    )
  })
})

describe('state', () => {
  /** Tables that remember what a pure function returned, by its argument: two machines in one process may share them. */
  const memos: Record<string, string> = {
    'os/config/identify.ts': 'the schema of a kind of document',
    'os/config/parse.ts': 'the parsed configuration of a resource',
    'os/k8s/documents/settings.ts': 'the parsed settings of a release of Kubernetes',
  }
  const table = /^(?:export )?const (\w+)(?:: [^=]+)? = (?:new (?:Weak)?(?:Map|Set)\b|\[\]|\{\})/gm

  test('of the operating system has an owner on the machine: no module holds any', () => {
    const changing = files.filter((path) => {
      if (!path.startsWith('os/')) return false
      const text = readFileSync(join(source, path), 'utf8')
      if (/^(?:export )?let |^ +static (?:#|(?!readonly\b)\w+(?: =|;|: [^(]*=))/m.test(text)) return true
      const changes = (name: string) => new RegExp(`\\b${name}(?:\\.(?:set|add|delete|clear|push|splice|unshift)\\(|\\[[^\\]]+\\] = )`)
      return [...text.matchAll(table)].some(([, name = '']) => changes(name).test(text))
    })
    expect(changing).toEqual(Object.keys(memos))
  })
})

describe('facts', () => {
  /** Files that read a text, and whose it is. The text of another program is read in one place; this system's own has fields. */
  const readers: Record<string, string> = {
    'document/cel/environment.ts': 'messages of the expression library',
    'document/cel/error.ts': 'messages of the expression library and the runtime',
    'document/decode.ts': 'fills the value into the message of a check',
    'os/cri/debug-container.ts': 'errors of runc, which containerd passes on without a code',
    'os/diagnosis/explain.ts': 'the last output of services and containers',
    'os/k8s/kubelet/serving-request.ts': 'a key usage of Kubernetes, whose name has a space',
    'os/lifecycle/slots/grub-config.ts': 'the fields of a boot entry, which the file holds as comments',
    'programs/factory/release/pcr-policy.ts': 'the version of a stub of systemd, which it states in a text',
    'programs/talosctl/cluster/engine/images.ts': 'the name of a loaded image: the API of container engines has no field for it',
    'programs/talosctl/cluster/qemu/accelerator.ts': 'the console of a kernel',
    'programs/talosctl/commands/machineconfig/edit.ts': 'the position in the answer of a node: the API has no field for it',
    'programs/talosctl/reply-metadata.ts': 'the status in an answer of nodes that do not send it as a field',
  }
  const prose = String.raw`(?:messageOf\([^()]*\)|describe\([^()]*\)|\b(?:message|msg|reason|sentence|summary|description|detail|explanation|stderr)\b)`
  const words = '[a-z]{2,} [a-z(]'
  const reading = [
    // Lines and white space are layout.
    String.raw`${prose}\)?\??\.(?:includes|startsWith|endsWith|match|matchAll|search|indexOf|replace|replaceAll|split)\((?!'\\n'|/\\[ns])`,
    String.raw`\.(?:test|exec)\((?:[\w.]*\b)?${prose}`,
    String.raw`(?<!typeof \S*)\.message [!=]==|[!=]== [\w.]+\.message\b|switch \([\w.]*\bmessage\)`,
    String.raw`\.(?:includes|startsWith|endsWith|indexOf|search)\((['"\x60])[^'"\x60]*${words}`,
    String.raw`(?:^\s*|[=(,[?:]\s*|return )/(?![/*])(?:[^/\\]|\\.)*${words}(?:[^/\\]|\\.)*/[dgimsuvy]*(?:[\s,.)\]]|$)`,
    `(?:[!=]== |case )'[^']*${words}`,
    String.raw`\.constructor\.name|\.name [!=]== '[A-Z]\w*(?:Error|Controller)'`,
  ].map((pattern) => new RegExp(pattern))
  const withoutComments = (path: string) =>
    readFileSync(join(source, path), 'utf8')
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/(^|\s)\/\/.*$/gm, '')
      .split('\n')
  const reads = (line: string) => reading.some((pattern) => pattern.test(line))

  test('are fields: no logic reads the text of a message, an event or a condition', () => {
    // What these rooms read are formats.
    const judged = files.filter((path) => !/^(wire|linux)\//.test(path) && path !== 'rpc/messages.ts')
    expect(judged.filter((path) => withoutComments(path).some(reads))).toEqual(Object.keys(readers))
  })

  test('that are read from texts are found', () => {
    const found = [
      "if (error.message.includes('refused')) return",
      "reason.replace(/ not ready$/, '')",
      "if (messageOf(error).startsWith('x')) return",
      'const [, id] = pattern.exec(reason) ?? []',
      'entry.message === controllerRecovered',
      "text.includes('is not ready')",
      'const late = /no answer within/',
      "if (state === 'not ready yet') return",
      "error.constructor.name === 'X'",
    ]
    expect(found.filter((line) => !reads(line))).toEqual([])
    expect(["message.split('\\n')[0]", "error.reason === 'missing'", "path.startsWith('/dev/')"].filter(reads)).toEqual([])
  })
})

describe('promises', () => {
  // The linter sees promises that nobody takes; `void` would hide them from it, and a rejection then ends PID 1.
  test('are awaited, handled or given to background(), never thrown away with void', () => {
    const broken = files.flatMap((path) =>
      codeOf(path).flatMap((line, index) => (/\bvoid\s+(?!\(await\b)[\w(]/.test(line) ? [`${path}:${index + 1}`] : [])),
    )
    expect(broken).toEqual([])
  })
})

describe('the wall clock', () => {
  /** Files that read the time of day, and why; everything else takes a Clock and decides by its monotonic half. */
  const stampers: Record<string, string> = {
    'cosi/clock.ts': 'the clock itself',
    'cosi/log.ts': 'log lines',
    'cosi/store.ts': 'created and updated of resources',
    'os/config/generate/secrets.ts': 'certificates',
    'os/k8s/api/kubeconfig.ts': 'certificates',
    'os/lifecycle/upgrade/records.ts': 'when an upgrade failed',
    'os/network/api/packet-capture.ts': 'captured packets',
    'os/network/link/wireguard.ts': 'compared with handshakes, which the kernel stamps',
    'os/runtime/events.ts': 'events',
    'os/runtime/kernel-lines.ts': 'lines of the kernel log',
    'os/telemetry/audit/audit-log.ts': 'audit records',
    'os/telemetry/traces/call-spans.ts': 'spans',
    'pki/certificate.ts': 'certificates',
    'pki/secure-boot.ts': 'certificates and signatures',
    'programs/apid/access-log.ts': 'access lines',
    'programs/node-supervisor/console-log.ts': 'console lines',
    'programs/node-supervisor/supervise-node.ts': 'the state file',
    'programs/talosctl/commands/lifecycle/upgrade.ts': 'shown to people',
    'programs/talosctl/dashboard/gather.ts': 'compared with the boot time of /proc/stat',
    'programs/talosctl/io.ts': 'shown to people',
    'programs/trustd/certificate.ts': 'certificates',
    'programs/wireguard/tunnel.ts': 'time stamps of handshakes',
    'rpc/http2/acceptor.ts': 'certificates of clients',
    'supervise/containerd/containers.ts': 'the label by which containerd keeps content',
  }
  const readsTime = (path: string) => codeOf(path).some((line) => /\bDate\.now\b|\bnew Date\(\)/.test(line))

  test('is read only where a time stamp is written', () => {
    expect(files.filter(readsTime)).toEqual(Object.keys(stampers))
  })
})
