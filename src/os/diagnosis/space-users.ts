/** What takes the space of EPHEMERAL: pods by name, images, logs, etcd. */
import type { Kernel } from '../kernel.ts'

type Files = Pick<Kernel['files'], 'walk' | 'list' | 'exists'>

/** Most entries that are looked at: a full disk may hold millions of files, and this runs where the node itself is served. */
const entryLimit = 50_000
/** How many users are named. */
const named = 4

const podVolumes = '/var/lib/kubelet/pods'
const podLogs = '/var/log/pods'

/** Folders of the system by who uses them. */
const ownFolders: Readonly<Record<string, readonly string[]>> = {
  'images and the files of containers': ['/var/lib/containerd'],
  etcd: ['/var/lib/etcd'],
  'user volumes in folders': ['/var/mnt'],
  'releases and overlays of the system': ['/var/system/uploads', '/var/system/unpacked', '/var/system/overlays'],
}

/** The largest users of /var in words, the largest first; undefined when there is nothing to name. */
export async function spaceUsers(files: Files): Promise<string | undefined> {
  const budget = { left: entryLimit }
  const users = new Map<string, number>()
  for (const [name, folders] of [...podsOf(files), ...Object.entries(ownFolders), systemLogs(files)])
    for (const folder of folders.filter((each) => files.exists(each))) {
      const bytes = await bytesIn(files, folder, budget)
      if (bytes > 0) users.set(name, (users.get(name) ?? 0) + bytes)
    }
  if (users.size === 0) return undefined
  const largest = [...users].sort(([, a], [, b]) => b - a).slice(0, named)
  const counted = budget.left <= 0 ? `of the first ${entryLimit} files, most are of` : 'most of it is of'
  return `${counted} ${largest.map(([name, bytes]) => `${name} (${Math.ceil(bytes / 2 ** 20)} MiB)`).join(', ')}`
}

/** Volumes and logs of each pod. The names of the folders of logs have namespace, name and UID of the pod. */
function podsOf(files: Files): [string, readonly string[]][] {
  const pods = new Map<string, [string, readonly string[]]>()
  for (const uid of listed(files, podVolumes)) pods.set(uid, [`pod ${uid}`, [`${podVolumes}/${uid}`]])
  for (const each of listed(files, podLogs)) {
    const [namespace = '', name = '', uid = ''] = each.split('_')
    const [, folders = []] = pods.get(uid) ?? []
    pods.set(uid, [`pod ${namespace}/${name}`, [...folders, `${podLogs}/${each}`]])
  }
  return [...pods.values()]
}

/** Everything in the folder of logs but those of pods. */
const systemLogs = (files: Files): [string, readonly string[]] => [
  'logs of the system',
  listed(files, '/var/log')
    .map((each) => `/var/log/${each}`)
    .filter((each) => each !== podLogs),
]

const listed = (files: Files, folder: string): string[] => (files.exists(folder) ? files.list(folder) : [])

async function bytesIn(files: Files, folder: string, budget: { left: number }): Promise<number> {
  let bytes = 0
  for await (const { stats } of files.walk(folder, { oneFileSystem: true })) {
    if (budget.left-- <= 0) break
    // What vanished meanwhile takes no space.
    bytes += (stats?.blocks ?? 0) * 512
  }
  return bytes
}
