/** The page of all resource types, as the areas of the operating system declare them. */
import { join } from 'node:path'
import { Glob } from 'bun'
import { Namespace, ResourceDefinition, shortAliases } from '../../src/cosi/meta.ts'
import type { AnyResourceType } from '../../src/cosi/resource.ts'
import { keys, typeName } from '../../src/os/config/reference.ts'
import { namespaces } from '../../src/os/namespaces.ts'
import { areas } from '../../src/programs/init/areas.ts'
import { anchorOf } from '../site/links.ts'
import { cell, generated, table } from './text.ts'

const source = join(import.meta.dir, '../../src')

/** All resource types by namespace. */
export async function resourcesPage(): Promise<string> {
  const descriptions = await describedTypes()
  const types = [Namespace, ResourceDefinition, ...areas.flatMap(({ resources }) => resources)].sort((a, b) => (a.type < b.type ? -1 : 1))
  const used = Object.entries(namespaces).filter(([name]) => types.some(({ namespace }) => namespace === name))
  return [
    '# Resources',
    '',
    `${generated} \`talosctl get TYPE\` lists the resources of a type on each node, \`-w\` follows their changes, \`-o yaml\` shows their specs.`,
    'A type is named by its full name or by an alias. Only administrators may read types that are marked *sensitive*.',
    'In the names of fields, `[]` stands for each item of a list and `{}` for each key of a map.',
    '',
    ...table(
      ['namespace', 'what it holds'],
      Object.entries(namespaces).map(([name, holds]) => [
        used.some(([other]) => other === name) ? `[\`${name}\`](#${anchorOf(name)})` : `\`${name}\``,
        cell(holds),
      ]),
    ),
    ...used.flatMap(([name, holds]) => [
      `## ${name}`,
      '',
      holds,
      '',
      ...types.filter(({ namespace }) => namespace === name).flatMap((type) => section(type, descriptions.get(type.type) ?? '')),
    ]),
  ].join('\n')
}

function section(type: AnyResourceType, description: string): string[] {
  const aliases = shortAliases(type).map((alias) => `\`${alias}\``)
  const columns = Object.keys(type.columns).map((column) => cell(column))
  const facts = [
    ...(aliases.length > 0 ? [`Aliases: ${aliases.join(', ')}.`] : []),
    ...(columns.length > 0 ? [`Columns: ${columns.join(', ')}.`] : []),
    ...(type.sensitive ? ['*Sensitive.*'] : []),
  ]
  const fields = [...keys(type.schema, '')].map(({ path, schema }) => [`\`${cell(path)}\``, typeName(schema)])
  return [`### ${type.type}`, '', description, '', ...(facts.length > 0 ? [facts.join(' '), ''] : []), ...table(['field', 'value'], fields)]
}

/** Resource type → the comment at its declaration. */
async function describedTypes(): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for await (const path of new Glob('**/*.ts').scan(source)) {
    const text = await Bun.file(join(source, path)).text()
    for (const [, comment = '', type = ''] of text.matchAll(
      /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\nexport const \w+ = defineResource\(\{\s*type: '([^']+)'/g,
    ))
      found.set(type, comment.replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim())
  }
  return found
}
