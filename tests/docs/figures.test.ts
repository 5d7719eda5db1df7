/**
 * Figures in the documentation: each duration and size is a limit of the source, at the place named here, or a fact of another
 * program. How fast or large anything is stands in bench/README.md alone, where each table names the script that measures it.
 */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')
const textOf = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = ['README.md', ...readdirSync(join(root, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : []))]

/** A page without its examples. */
const prose = (page: string) =>
  textOf(page)
    .replace(/^ *```[\s\S]*?^ *```/gm, '')
    .replace(/`[^`\n]*`/g, '``')

const figure = /(?<![\w.,:/-])\d[\d,.]*[ -]?(?:ms|s|seconds?|minutes?|hours?|days?|[kKMGT]i?B|bytes)\b/g

/** Page, figure, and a line of the source that states the same. */
const limits: readonly (readonly [page: string, figure: string, source: string, line: string])[] = [
  ['docs/architecture.md', '64 KiB', 'proto/generate.ts', 'single: 64 * 1024'],
  ['docs/architecture.md', '4 MiB', 'proto/generate.ts', 'streamed: 4 * 1024 * 1024'],
  ['docs/architecture.md', '30 s', 'src/rpc/server/requests.ts', 'const requestTime = 30_000'],
  ['docs/backup.md', '15 seconds', 'src/os/etcd/controllers/upkeep.ts', 'const interval = 15_000'],
  ['docs/backup.md', '16 MiB', 'src/os/etcd/backup/s3-target.ts', 'partLength = 16 << 20'],
  ['docs/backup.md', '64 MiB', 'src/os/etcd/upkeep/plan.ts', 'defragmentationFloor = 64 * 1024 * 1024'],
  ['docs/changing-configuration.md', '60 s', 'src/os/config/apply/reach.ts', 'reachWithin = 60_000'],
  ['docs/changing-configuration.md', '180 s', 'src/os/config/apply/reach.ts', 'reachAfterStart = 180_000'],
  ['docs/changing-configuration.md', '3 s', 'src/os/config/apply/reach.ts', 'settleTime = 3000'],
  ['docs/changing-configuration.md', '24 hours', 'src/os/config/trial/marker.ts', 'longestTrial = 24 * 3600_000'],
  ['docs/changing-configuration.md', '20 seconds', 'src/os/k8s/component/trial.ts', 'settleTime = 20_000'],
  ['docs/clusters.md', '10 MiB', 'src/programs/node-supervisor/console-log.ts', 'limit = 5 * 1024 * 1024'],
  ['docs/clusters.md', '90 minutes', 'src/programs/talosctl/cluster/create.ts', 'usual: 20 * 60_000, emulated: 90 * 60_000'],
  ['docs/clusters.md', '1 GiB', 'src/os/k8s/kubelet/configuration.ts', "'nodefs.available': '1Gi'"],
  ['docs/images.md', '4 KiB', 'src/programs/factory/root/verity.ts', 'const blockSize = 4096'],
  ['docs/images.md', '1 MiB', 'src/programs/factory/schematic.ts', 'longestSchematic = 1 << 20'],
  ['docs/images.md', '64 MiB', 'src/programs/factory/schematics.ts', 'schematicsLimit = 64 << 20'],
  ['docs/images.md', '10 seconds', 'rootfs/image/command-line.ts', "'panic=10'"],
  ['docs/images.md', '20 seconds', 'rootfs/stage0/find-root.c', '#define TIMEOUT_AFTER_DAMAGE 20'],
  ['docs/logging.md', '64 KiB', 'src/os/telemetry/shipping/log-feed.ts', 'longestLine = 64 * 1024'],
  ['docs/logging.md', '500 ms', 'src/os/telemetry/shipping/delivery.ts', 'firstDelay: 500'],
  ['docs/logging.md', '10 seconds', 'src/os/telemetry/shipping/delivery.ts', 'longestDelay: 10_000'],
  ['docs/disks.md', '30 seconds', 'src/os/block/controllers/arrays.ts', 'const grace = 30_000'],
  ['docs/logging.md', '30 seconds', 'src/os/telemetry/shipping/carrier.ts', 'stallTimeout = 30_000'],
  ['docs/logging.md', '512 KiB', 'src/supervise/log-ring.ts', 'capacity = 512 * 1024'],
  ['docs/logging.md', '10 MiB', 'src/os/runtime/log-files.ts', 'const largest = 5 << 20'],
  ['docs/logging.md', '5 seconds', 'src/os/telemetry/shipping/deliveries.ts', 'drainLimit = 5000'],
  ['docs/logging.md', '2 seconds', 'src/os/telemetry/shipping/deliveries.ts', 'idleLimit = 2000'],
  ['docs/metrics.md', '128 MiB', 'src/os/cri/groups.ts', "path: '/system/metricsd', max: 128"],
  ['docs/metrics.md', '10 seconds', 'src/programs/metricsd/connection.ts', 'greeting: 10_000'],
  ['docs/metrics.md', '8 KiB', 'src/programs/metricsd/connection.ts', 'head: 8192'],
  ['docs/management.md', '25 seconds', 'src/os/siderolink/link.ts', 'keepalive = 25'],
  ['docs/management.md', '275 seconds', 'src/os/siderolink/link.ts', 'silence = 275'],
  ['docs/mesh.md', '30 minutes', 'src/os/cluster/controllers/discovery-service.ts', 'const lifetime = 30 * 60'],
  ['docs/mesh.md', '30 seconds', 'src/os/cluster/discovery/watch-service.ts', 'const keepaliveInterval = 30_000'],
  ['docs/mesh.md', '1.5 seconds', 'src/os/kubespan/peer-tracker.ts', 'first: 1_500'],
  ['docs/mesh.md', '90 seconds', 'src/os/kubespan/peer-tracker.ts', 'silent: 90_000'],
  ['docs/mesh.md', '35 seconds', 'src/os/kubespan/peer-tracker.ts', 'moved: 35_000'],
  ['docs/mesh.md', '25 seconds', 'src/os/kubespan/mesh.ts', 'keepalive = 25'],
  ['docs/mesh.md', '16 MiB', 'src/os/network/dns/cache.ts', 'const mostBytes = 16 << 20'],
  ['docs/network.md', '4.8 seconds', 'src/os/etcd/client.ts', 'const ownTrust = 0.6'],
  ['docs/network.md', '400 ms', 'src/os/time/ntp/synchronizer.ts', 'slewLimit = 0.4'],
  ['docs/operating.md', '60 seconds', 'src/programs/talosctl/commands/resource/get.ts', 'const readTimeout = 60_000'],
  ['docs/operating.md', '60 seconds', 'src/programs/talosctl/commands/image/image.ts', 'const listTimeout = 60_000'],
  ['docs/operating.md', '30 minutes', 'src/programs/talosctl/commands/image/image.ts', 'const pullTimeout = 30 * 60_000'],
  ['docs/operating.md', '30 minutes', 'src/programs/talosctl/release/plan.ts', 'const planTimeout = 30 * 60_000'],
  ['docs/operating.md', '60 minutes', 'src/programs/talosctl/commands/lifecycle/install.ts', 'const installTimeout = 60 * 60_000'],
  ['docs/operating.md', '30 seconds', 'src/os/k8s/kubelet/shutdown-time.ts', 'all: 30, critical: 10'],
  ['docs/operating.md', '10 seconds', 'src/os/lifecycle/stop.ts', 'const kubeletMargin = 10_000'],
  ['docs/operating.md', '75 seconds', 'src/programs/node-supervisor/run-node.ts', 'const stopTimeout = 75_000'],
  ['docs/operating.md', '60 seconds', 'src/os/security/api/verify.ts', 'time: 60_000'],
  ['docs/operating.md', '60 seconds', 'src/os/runtime/controllers/oom.ts', 'const settlingTime = 60_000'],
  ['docs/operating.md', '500 ms', 'src/os/runtime/controllers/oom.ts', 'const usualInterval = 500'],
  ['docs/operating.md', '15 seconds', 'src/os/runtime/controllers/log-persistence.ts', 'lookInterval * looksPerFlush is 15 seconds'],
  ['docs/operating.md', '5 MiB', 'src/os/runtime/log-files.ts', 'const largest = 5 << 20'],
  ['docs/operating.md', '512 MiB', 'src/os/lifecycle/release/bounded-file.ts', 'roomOfRelease = 512 * 2 ** 20'],
  ['docs/operating.md', '64 MiB', 'src/os/block/space-reserve.ts', 'const largest = 64 * 2 ** 20'],
  ['docs/operating.md', '8 MiB', 'src/os/telemetry/audit/audit-file.ts', 'const largest = 4 << 20'],
  ['docs/kubernetes-upgrades.md', '5 minutes', 'src/programs/talosctl/commands/kubernetes/upgrade-k8s.ts', 'duration, 5 * minutes'],
  ['docs/platforms.md', '30 minutes', 'src/os/network/controllers/platform.ts', 'const reportLimit = 30 * 60_000'],
  ['docs/platforms.md', '5 minutes', 'src/os/network/platform/phone-home.ts', 'const limit = 5 * 60_000'],
  ['docs/rotation.md', '75 seconds', 'src/programs/talosctl/rotation/rotate-keys.ts', 'const tokenReload = 75_000'],
  ['docs/upgrades.md', '2101 MiB', 'src/os/lifecycle/install/layout.ts', 'size: 2101 * mebibyte'],
  ['docs/upgrades.md', '2000 MiB', 'src/os/lifecycle/install/layout.ts', 'size: 2000 * mebibyte'],
  ['docs/upgrades.md', '1 GiB', 'src/os/lifecycle/release/bounded-file.ts', 'const largest = 2 ** 30'],
  ['docs/upgrades.md', '30 minutes', 'src/os/lifecycle/upgrade/trial.ts', 'const usualMinutes = 30'],
]

/** Figures of other programs. */
const elsewhere: Record<string, string> = {
  'docs/disks.md: 4 KiB': 'the other size that sectors have',
  'docs/images.md: 15 seconds': 'systemd-boot counts them down itself',
}

test('a duration or size in a page is a limit of the source', () => {
  const known = new Set([...limits.map(([page, text]) => `${page}: ${text}`), ...Object.keys(elsewhere)])
  const found = new Set(pages.flatMap((page) => [...prose(page).matchAll(figure)].map(([text]) => `${page}: ${text}`)))
  expect([...found].filter((each) => !known.has(each))).toEqual([])
  expect([...known].filter((each) => !found.has(each))).toEqual([])
})

test.each(limits)('%s: %s is in %s', (_, __, source, line) => {
  expect(textOf(source)).toContain(line)
})

test('a comparison of speed or size is in bench/README.md alone', () => {
  const comparison = /\btimes (?:as \w+|slower|faster|larger|smaller|longer|more|less)\b|\b(?:twice|half) as\b|\d ?(?:%|percent)/g
  expect(pages.flatMap((page) => [...prose(page).matchAll(comparison)].map(([text]) => `${page}: ${text}`))).toEqual([])
})
