class Table(BaseModel):
    content: conlist(conlist(str, min_length=5, max_length=10), min_length=5, max_length=10)

json_schema = Table.model_json_schema()
