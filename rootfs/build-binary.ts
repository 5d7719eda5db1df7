/** `bun run build`: the binary alone. */
import { buildBinary } from './build/binary.ts'
import { installDependencies } from './build/dependencies.ts'
import { failed } from './build/failure.ts'
import { formatSize, formatTime } from './build/progress.ts'

const started = performance.now()
try {
  await installDependencies()
  const { path, built } = await buildBinary()
  const size = formatSize(Bun.file(path).size)
  console.log(built ? `dist/ichor built: ${size}, ${formatTime(performance.now() - started)}` : `dist/ichor is up to date: ${size}`)
} catch (error) {
  failed(error)
}
