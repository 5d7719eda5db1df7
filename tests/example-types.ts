/** Checks the types of the example of docs/contributing.md, in a copy of the source: a part of `bun run check`. */
import { join } from 'node:path'
import { writePageExample } from './support/page-example.ts'

using example = await writePageExample()
const config = { extends: './tsconfig.json', include: [], files: [...example.sources, 'src/rpc/text.d.ts'] }
await Bun.write(join(example.folder, 'tsconfig.example.json'), JSON.stringify(config))
const steps = [
  [process.execPath, 'proto/generate.ts'],
  ['node_modules/.bin/tsc', '-p', 'tsconfig.example.json'],
]
for (const step of steps) {
  const { code, output } = await example.run(...step)
  if (code === 0) continue
  console.error(`the example of docs/contributing.md:\n${output}`)
  process.exitCode = code
  break
}
