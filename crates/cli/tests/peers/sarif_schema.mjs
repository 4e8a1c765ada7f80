// Checks the SARIF log on stdin against the schema of SARIF 2.1.0 and prints what is wrong with it
// as a JSON array. The arguments are the file of the schema and a file beside which `ajv` is found.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [schemaFile, neighbour] = process.argv.slice(2);
const Ajv = createRequire(neighbour)("ajv").default;

const schema = JSON.parse(readFileSync(schemaFile, "utf8"));
// The schema is of draft 4, whose words it shares with the draft that ajv knows.
delete schema.$schema;
delete schema.id;
const options = { strict: false, validateFormats: false, allErrors: true, unicodeRegExp: false };
const validate = new Ajv(options).compile(schema);
const valid = validate(JSON.parse(readFileSync(0, "utf8")));
process.stdout.write(JSON.stringify(valid ? [] : validate.errors));
